import { WebhookError } from '../../errors.ts'
import type { Claims, IdempotencyStore } from '../../idempotency/store.ts'
import { LazyAbort } from '../../internal/lazy-abort.ts'
import type { Logger } from '../../internal/logger.ts'
import { sleep, type Timer, unref } from '../../internal/timers.ts'
import type { AcceptedEvent, Attempt, UnfinishedEvent } from '../inbox.ts'

/** An attempt at an event by the request that brought it. The claim of its key keeps others away. */
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
  /** True once another attempt may have replaced it. */
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

  /**
   * True once its heartbeats stay away. On Workers, a request that is cut off goes without a word: its promises never
   * settle, and its timers never fire.
   */
  get isLate(): boolean {
    return performance.now() - this.#beatAt >= this.#leaseMs
  }

  /** A process that was suspended may ask before the timer that aborts its attempts. */
  override get aborted(): boolean {
    return super.aborted || this.isDropped || this.#claims.isOver?.(this.accepted.event.key) === true
  }

  end(): void {
    clearTimeout(this.#timer)
  }
}

/** The attempts that are being made, one at a time of each event. */
export class ClaimedAttempts {
  readonly claims: Claims
  readonly #leaseMs: number
  readonly #byKey = new Map<string, ClaimedAttempt>()
  /** Called whenever the last one has ended. */
  onIdle: (() => void) | undefined

  constructor(store: Pick<IdempotencyStore, 'claims'>, leaseMs: number, logger: Logger) {
    const stop = (key: string) =>
      this.#byKey.get(key)?.abort(new WebhookError('lease_lost', 'the lease of the event was lost'))
    this.claims = store.claims({ leaseMs, logger, onLost: stop, onEnd: stop })
    this.#leaseMs = leaseMs
  }

  /** The events of those that go on. */
  get running(): readonly UnfinishedEvent[] {
    return [...this.#byKey.values()]
      .filter(({ isLate }) => !isLate)
      .map(({ accepted }) => ({ ...accepted, state: 'running' }))
  }

  /** Begins an attempt, before its claim. Resolves to `undefined` while another one at the same event goes on. */
  async begin(accepted: AcceptedEvent, number: number): Promise<ClaimedAttempt | undefined> {
    for (const [key, attempt] of this.#byKey) {
      // In a process that was suspended, the late timers fire first.
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

  /** Aborts what goes on. The claims run out. */
  stop(): void {
    for (const attempt of this.#byKey.values()) attempt.abort(new WebhookError('closing', 'the inbox is closing'))
    this.claims.stop()
  }
}
