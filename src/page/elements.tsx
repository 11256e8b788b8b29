import type { PropsWithChildren } from 'hono/jsx'

/** A button that copies a text. It needs the script, and is hidden without it. */
export function CopyButton({ text, label }: { text: string; label: string }) {
  return (
    <button type="button" class="copy" data-copy={text} aria-label={`Copy ${label}`}>
      Copy
    </button>
  )
}

/** A text with a button to copy it. */
export function Copyable({ text, label }: { text: string; label: string }) {
  return (
    <span class="copyable">
      <code>{text}</code>
      <CopyButton text={text} label={label} />
    </span>
  )
}

/** A list of {@link Fact}s. */
export function Facts({ children }: PropsWithChildren) {
  return <dl class="facts">{children}</dl>
}

/** A name with its value. */
export function Fact({ name, children }: PropsWithChildren<{ name: string }>) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

interface MarkProps {
  /** A word of a few, which is also the class of the element. */
  readonly state: string
  /** A symbol, so that states differ by more than colour. */
  readonly shape: string
  /** Shows only the symbol. The word is its tooltip and is read by screen readers. */
  readonly brief?: boolean | undefined
}

/** The state of something: a symbol and a word. */
export function Mark({ state, shape, brief = false }: MarkProps) {
  return (
    <span class={`state ${state}`} title={brief ? state : undefined}>
      <span aria-hidden="true">{shape}</span> <span class={brief ? 'unseen' : undefined}>{state}</span>
    </span>
  )
}
