import type { PropsWithChildren } from 'hono/jsx'
import type { SendingState } from '../emulator/sending/sending.ts'

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

/** A time of day in the time zone of this machine, which is also the reader's. */
export function Moment({ at, precise = false }: { at: Date; precise?: boolean }) {
  const time = at.toTimeString().slice(0, 8)
  const milliseconds = String(at.getMilliseconds()).padStart(3, '0')
  return (
    <time datetime={at.toISOString()} title={at.toISOString()}>
      {precise ? `${time}.${milliseconds}` : time}
    </time>
  )
}

/** Formats a duration: `0.4 ms`, `12 ms`, `3.2 s`, `16 min`. */
export function duration(ms: number): string {
  if (ms < 1) return `${ms.toFixed(1)} ms`
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${Number((ms / 1_000).toFixed(1))} s`
  return `${Number((ms / 60_000).toFixed(1))} min`
}

/** The symbol of each state, so that states differ by more than colour. */
const shapes: Record<SendingState, string> = {
  waiting: '○',
  delivering: '→',
  retrying: '↻',
  acknowledged: '✓',
  failed: '✕',
  dropped: '–',
}

/** The state of a sending. `brief` shows only the symbol; the word is its tooltip and is read by screen readers. */
export function StateMark({ state, brief = false }: { state: SendingState; brief?: boolean }) {
  return (
    <span class={`state ${state}`} title={brief ? state : undefined}>
      <span aria-hidden="true">{shapes[state]}</span> <span class={brief ? 'unseen' : undefined}>{state}</span>
    </span>
  )
}
