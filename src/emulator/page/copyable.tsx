/** Copies a text. It takes a script, so a browser without one is not shown it. */
export function CopyButton({ text, label }: { text: string; label: string }) {
  return (
    <button type="button" class="copy" data-copy={text} aria-label={`Copy ${label}`}>
      Copy
    </button>
  )
}

/** A text that is there to be copied. */
export function Copyable({ text, label }: { text: string; label: string }) {
  return (
    <span class="copyable">
      <code>{text}</code>
      <CopyButton text={text} label={label} />
    </span>
  )
}
