import { recogniseAnyCopy, WebhookError } from '../errors.ts'
import { durationText, parseDuration } from '../internal/duration.ts'
import { retryAfterKey } from './failed-runs.ts'

/**
 * Throw it if a retry can't help. The handler does not run again for this event, unless the event is replayed. The
 * event becomes a dead letter once no other handler is retried.
 *
 * ```ts
 * if (film === undefined) throw new PermanentFailure(`there is no film ${event.mediaId}`)
 * ```
 */
export class PermanentFailure extends Error {
  override readonly name = 'PermanentFailure'

  /** @param reason shown in the dead letter */
  constructor(reason: string, options?: ErrorOptions) {
    super(reason, options)
  }
}

recogniseAnyCopy(PermanentFailure, 'PermanentFailure')
Object.defineProperty(PermanentFailure.prototype, retryAfterKey, { value: Number.POSITIVE_INFINITY })

/**
 * Throw it to set the delay before the next attempt. Does not add attempts: after the last one, the event is dead.
 *
 * ```ts
 * if (response.status === 429) throw new RetryAfter('90 s')
 * ```
 */
export class RetryAfter extends Error {
  override readonly name = 'RetryAfter'
  readonly delayMs: number

  /**
   * @param delay ms, a text such as `90 s`, `10 min` or `2 h`, or the time of the next attempt; at most 24 days
   * @throws WebhookError `invalid_option`
   */
  constructor(delay: number | string | Date, options?: ErrorOptions) {
    const delayMs = toMs(delay)
    const { message: why } = (options?.cause ?? {}) as Partial<Error>
    super(`the handler asked to retry after ${durationText(delayMs)}${why ? `: ${why}` : ''}`, options)
    this.delayMs = delayMs
  }
}

recogniseAnyCopy(RetryAfter, 'RetryAfter')
Object.defineProperty(RetryAfter.prototype, retryAfterKey, {
  get(this: RetryAfter) {
    return this.delayMs
  },
})

/** 24 days: `setTimeout` overflows soon after. */
const maxMs = 24 * 86_400_000

function toMs(delay: number | string | Date): number {
  const ms =
    // Not `instanceof`: a `Date` may come from another realm.
    typeof (delay as Date)?.getTime === 'function'
      ? Math.max(0, (delay as Date).getTime() - Date.now())
      : typeof delay === 'string'
        ? parseDuration(delay)
        : delay
  if (typeof ms === 'number' && ms >= 0 && ms <= maxMs) return Math.ceil(ms)
  const message =
    "RetryAfter: delay must be a number of ms, a text such as '90 s', '10 min' or '2 h', or a Date, up to 24 days"
  throw new WebhookError('invalid_option', message)
}
