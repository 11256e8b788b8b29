import type { PropsWithChildren } from 'hono/jsx'
import type { SendingState } from '../sending/sending.ts'

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

/** A list of {@link Fact}s. */
export function Facts({ children }: PropsWithChildren) {
  return <dl class="facts">{children}</dl>
}

/** A name and what it stands for. */
export function Fact({ name, children }: PropsWithChildren<{ name: string }>) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

/** A moment of the day, by the clock of this machine, which is the reader's too. */
export function Moment({ at, precise = false }: { at: Date; precise?: boolean }) {
  const time = at.toTimeString().slice(0, 8)
  const milliseconds = String(at.getMilliseconds()).padStart(3, '0')
  return (
    <time datetime={at.toISOString()} title={at.toISOString()}>
      {precise ? `${time}.${milliseconds}` : time}
    </time>
  )
}

/** How long something took: `0.4 ms`, `12 ms`, `3.2 s`, `16 min`. */
export function duration(ms: number): string {
  if (ms < 1) return `${ms.toFixed(1)} ms`
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${Number((ms / 1_000).toFixed(1))} s`
  return `${Number((ms / 60_000).toFixed(1))} min`
}

/** Each state has a shape besides its word and colour. */
const shapes: Record<SendingState, string> = {
  waiting: '○',
  delivering: '→',
  retrying: '↻',
  acknowledged: '✓',
  failed: '✕',
  dropped: '–',
}

/** The state of a sending. In brief it is the shape, and the word for those who point at it or hear it. */
export function StateMark({ state, brief = false }: { state: SendingState; brief?: boolean }) {
  return (
    <span class={`state ${state}`} title={brief ? state : undefined}>
      <span aria-hidden="true">{shapes[state]}</span> <span class={brief ? 'unseen' : undefined}>{state}</span>
    </span>
  )
}
