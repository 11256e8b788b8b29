import { WebhookError } from '../../errors.ts'
import { checkNumbers } from '../../internal/check-options.ts'
import { within } from '../../internal/timers.ts'
import type { Studio } from '../media/studio.ts'
import type { Outbox } from '../sending/outbox.ts'

interface Settling {
  readonly outbox: Pick<Outbox, 'idle' | 'list'>
  readonly studio: Pick<Studio, 'idle' | 'list'>
  /** Its reason is what it rejects with then. */
  readonly closing: AbortSignal
  readonly timeoutMs: number
}

/**
 * Resolves when every media has come to its end and every event has been acknowledged or given up.
 * @throws WebhookError `timeout`, which says what is still going on; or `invalid_option`
 */
export async function settled({ outbox, studio, closing, timeoutMs }: Settling): Promise<void> {
  checkNumbers('settled', { timeoutMs })
  const underWay = () => [...encoding(studio), ...unfinished(outbox)]
  const end = async () => {
    // More than once: while events are on their way, a media may be added.
    while (!closing.aborted && underWay().length > 0) {
      await studio.idle()
      await outbox.idle()
    }
    closing.throwIfAborted()
  }
  await within(timeoutMs, end(), () => {
    throw new WebhookError('timeout', `not settled after ${timeoutMs} ms: ${underWay().join(', ')}`)
  })
}

function encoding(studio: Settling['studio']): readonly string[] {
  const count = studio.list().filter(({ state }) => state === 'encoding').length
  return count === 0 ? [] : [`${count} media encoding`]
}

/** Such as `3 events retrying`. */
function unfinished(outbox: Settling['outbox']): readonly string[] {
  const states = outbox.list().map(({ state }) => state)
  return (['waiting', 'delivering', 'retrying'] as const).flatMap((state) => {
    const count = states.filter((each) => each === state).length
    return count === 0 ? [] : [`${count} event${count === 1 ? '' : 's'} ${state}`]
  })
}
