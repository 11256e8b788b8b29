import { Mark } from '../../page/elements.tsx'
import type { SendingState } from '../sending/sending.ts'

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
