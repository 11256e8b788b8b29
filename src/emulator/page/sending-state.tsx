import type { SendingState } from '../sending/sending.ts'

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
