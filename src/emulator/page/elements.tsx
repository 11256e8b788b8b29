import { Mark } from '../../page/elements.tsx'
import type { SendingState } from '../sending/sending.ts'

interface MomentProps {
  readonly at: Date
  /** `true` to show milliseconds. */
  readonly precise?: boolean
  /** `true` to show the date, for a time that may be far from now. */
  readonly dated?: boolean
}

/** A time of day in the time zone of this machine, which is also the reader's. The tooltip has it in UTC. */
export function Moment({ at, precise = false, dated = false }: MomentProps) {
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().replace('T', ' ')
  return (
    <time datetime={at.toISOString()} title={at.toISOString()}>
      {local.slice(dated ? 0 : 11, precise ? 23 : 19)}
    </time>
  )
}

/** A name in at most two lines, whole in its tooltip: 255 characters without a space would fill twelve. */
export const Brief = ({ text = '' }: { text: string | undefined }) => (
  <span class="brief" title={text.length > 20 ? text : undefined}>
    {text}
  </span>
)

const shapes: Record<SendingState, string> = {
  waiting: '○',
  delivering: '→',
  retrying: '↻',
  acknowledged: '✓',
  failed: '✕',
  dropped: '–',
}

/** The state of a sending. `brief` shows only the symbol. */
export function StateMark({ state, brief }: { state: SendingState; brief?: boolean }) {
  return <Mark state={state} shape={shapes[state]} brief={brief} />
}
