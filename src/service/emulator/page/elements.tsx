import { Mark } from '../../../internal/page/elements.tsx'
import type { SendingState } from '../sending/sending.ts'

interface MomentProps {
  readonly at: Date
  readonly precise?: boolean
  readonly dated?: boolean
}

/** A time of day in this machine's time zone, which is also the reader's. UTC in the tooltip. */
export function Moment({ at, precise = false, dated = false }: MomentProps) {
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().replace('T', ' ')
  return (
    <time datetime={at.toISOString()} title={at.toISOString()}>
      {local.slice(dated ? 0 : 11, precise ? 23 : 19)}
    </time>
  )
}

/** A name in at most two lines, whole in the tooltip. */
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

/** A sending's state. `brief` shows only the symbol. */
export function StateMark({ state, brief }: { state: SendingState; brief?: boolean }) {
  return <Mark state={state} shape={shapes[state]} brief={brief} />
}
