import { WebhookError } from '../../errors.ts'
import type { Claims, IdempotencyStore } from '../../idempotency/store.ts'
import { LazyAbort } from '../../internal/lazy-abort.ts'
import type { Logger } from '../../internal/logger.ts'
import { sleep, type Timer, unref } from '../../internal/timers.ts'
import type { AcceptedEvent, Attempt, UnfinishedEvent } from '../inbox.ts'

/** An attempt made within the request or message that brought the event. The claim of its key keeps others out. */
export class ClaimedAttempt extends LazyAbort implements Attempt {
  readonly accepted: AcceptedEvent
  readonly number: number
  completed: readonly string[] = []
  succeeded: Attempt['succeeded']
  readonly #claims: Claims
  readonly #leaseMs: number
  /** `performance.now()`, ms. */
  #beatAt = 0
  #timer: Timer | undefined
  /** Set once another attempt may have replaced this one. */
  isDropped = false

  constructor(accepted: AcceptedEvent, number: number, claims: Claims, leaseMs: number) {
    super()
    this.accepted = accepted
    this.number = number
    this.#claims = claims
    this.#leaseMs = leaseMs
    this.#beat()
  }

  #beat(): void {
    this.#beatAt = performance.now()
    this.#timer = setTimeout(() => this.#beat(), this.#leaseMs / 3)
    unref(this.#timer)
  }

  /** True after a missed heartbeat. Workers cut requests off silently: no promise settles, no timer fires. */
  get isLate(): boolean {
    return performance.now() - this.#beatAt >= this.#leaseMs
  }

  /** Checks the clock: after a suspension, callers may run before the timer that aborts attempts. */
  override get aborted(): boolean {
    return super.aborted || this.isDropped || this.#claims.isOver?.(this.accepted.event.key) === true
  }

  end(): void {
    clearTimeout(this.#timer)
  }
}

/** The attempts under way, at most one per event. */
export class ClaimedAttempts {
  readonly claims: Claims
  readonly #leaseMs: number
  readonly #byKey = new Map<string, ClaimedAttempt>()
  /** Called when none are left. */
  onIdle: (() => void) | undefined

  constructor(store: Pick<IdempotencyStore, 'claims'>, leaseMs: number, logger: Logger) {
    const stop = (key: string) =>
      this.#byKey.get(key)?.abort(new WebhookError('lease_lost', 'the lease of the event was lost'))
    this.claims = store.claims({ leaseMs, logger, onLost: stop, onEnd: stop })
    this.#leaseMs = leaseMs
  }

  get running(): readonly UnfinishedEvent[] {
    return [...this.#byKey.values()]
      .filter(({ isLate }) => !isLate)
      .map(({ accepted }) => ({ ...accepted, state: 'running' }))
  }

  /** Begins an attempt; call it before the claim. Resolves to `undefined` while the event has another attempt. */
  async begin(accepted: AcceptedEvent, number: number): Promise<ClaimedAttempt | undefined> {
    for (const [key, attempt] of this.#byKey) {
      // After a suspension, let late timers fire first.
      if (attempt.isLate) await sleep(1)
      if (!attempt.isLate || this.#byKey.get(key) !== attempt) continue
      attempt.isDropped = true
      this.#byKey.delete(key)
      await this.claims.release(key)
    }
    const { key } = accepted.event
    if (this.#byKey.has(key)) return undefined
    const attempt = new ClaimedAttempt(accepted, number, this.claims, this.#leaseMs)
    this.#byKey.set(key, attempt)
    return attempt
  }

  end(attempt: ClaimedAttempt): void {
    attempt.end()
    const { key } = attempt.accepted.event
    if (this.#byKey.get(key) === attempt) this.#byKey.delete(key)
    if (this.#byKey.size === 0) this.onIdle?.()
  }

  stop(): void {
    for (const attempt of this.#byKey.values()) attempt.abort(new WebhookError('closing', 'the inbox is closing'))
    this.claims.stop()
  }
}
