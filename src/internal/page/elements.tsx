import type { PropsWithChildren } from 'hono/jsx'

/** Hidden without JavaScript. */
export function CopyButton({ text, label }: { text: string; label: string }) {
  return (
    <button type="button" class="copy" data-copy={text} aria-label={`Copy ${label}`}>
      Copy
    </button>
  )
}

export function Copyable({ text, label }: { text: string; label: string }) {
  return (
    <span class="copyable">
      <code>{text}</code>
      <CopyButton text={text} label={label} />
    </span>
  )
}

export function Facts({ children }: PropsWithChildren) {
  return <dl class="facts">{children}</dl>
}

export function Fact({ name, children }: PropsWithChildren<{ name: string }>) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

interface MarkProps {
  /** A word, also the CSS class. */
  readonly state: string
  /** A symbol: states must differ by more than colour. */
  readonly shape: string
  /** Shows only the symbol. The word is a tooltip, and read by screen readers. */
  readonly brief?: boolean | undefined
}

export function Mark({ state, shape, brief = false }: MarkProps) {
  return (
    <span class={`state ${state}`} title={brief ? state : undefined}>
      <span aria-hidden="true">{shape}</span> <span class={brief ? 'unseen' : undefined}>{state}</span>
    </span>
  )
}
