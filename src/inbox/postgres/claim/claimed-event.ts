import type { MediaEvent } from '../../../events/media-service/catalogue.ts'
import type { EarlierAttempts } from '../../engine/job.ts'
import { reviveEvent, reviveFailedAttempts } from '../../engine/stored.ts'
import type { FailedAttempt, TraceCarrier } from '../../reading.ts'
import type { ClaimedEvent } from '../../sql/event.ts'

/** The columns of a claimed event as one JSON text: the pool's type parsers may be the user's. */
export const claimedColumns = `json_build_object(
  'id', id::text, 'event', event, 'receivedAt', extract(epoch FROM received_at) * 1000,
  'attempts', attempts, 'completed', completed, 'crashes', crashes, 'trace', trace, 'failedAttempts', failed,
  'owed', owed, 'releases', releases
)::text AS claimed`

interface ClaimedRow extends Omit<EarlierAttempts, 'failedAttempts'> {
  readonly id: string
  readonly event: MediaEvent
  readonly receivedAt: number
  readonly crashes: number
  readonly releases: number
  readonly trace: TraceCarrier | null
  readonly failedAttempts: readonly FailedAttempt[] | null
  readonly owed: readonly string[] | null
}

export function toClaimed(claimed: string): ClaimedEvent {
  const { event, receivedAt, trace, failedAttempts, owed, ...row } = JSON.parse(claimed) as ClaimedRow
  return {
    ...row,
    accepted: {
      event: reviveEvent(event),
      receivedAt: new Date(Math.round(receivedAt)),
      ...(trace !== null && { trace }),
    },
    failedAttempts: reviveFailedAttempts(failedAttempts ?? []),
    owed: owed ?? undefined,
    size: claimed.length,
  }
}
