import { WebhookError } from '../../../errors.ts'
import { within } from '../../../internal/timers.ts'
import type { Studio } from '../media/studio.ts'
import type { Outbox } from '../sending/outbox.ts'

interface SettledOptions {
  readonly outbox: Pick<Outbox, 'idle' | 'list'>
  readonly studio: Pick<Studio, 'idle' | 'list'>
  /** Aborts when the emulator closes. `settled` then rejects with its reason. */
  readonly closing: AbortSignal
  readonly timeoutMs: number
}

/** @throws WebhookError `timeout`, naming what is unfinished */
export async function settled({ outbox, studio, closing, timeoutMs }: SettledOptions): Promise<void> {
  const stillRunning = () => [...encoding(studio), ...unfinished(outbox)]
  const end = async () => {
    // Loop, because a media item may be added while events are being sent.
    while (!closing.aborted && stillRunning().length > 0) {
      await studio.idle()
      await outbox.idle()
    }
    closing.throwIfAborted()
  }
  await within(timeoutMs, end(), () => {
    throw new WebhookError('timeout', `not settled after ${timeoutMs} ms: ${stillRunning().join(', ')}`)
  })
}

function encoding(studio: SettledOptions['studio']): readonly string[] {
  const count = studio.list().filter(({ state }) => state === 'encoding').length
  return count === 0 ? [] : [`${count} media encoding`]
}

/** Counts unfinished events by state, such as `3 events retrying`. */
function unfinished(outbox: SettledOptions['outbox']): readonly string[] {
  const states = outbox.list().map(({ state }) => state)
  return (['waiting', 'delivering', 'retrying'] as const).flatMap((state) => {
    const count = states.filter((each) => each === state).length
    return count === 0 ? [] : [`${count} event${count === 1 ? '' : 's'} ${state}`]
  })
}
