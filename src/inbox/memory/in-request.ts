import { LRUCache } from 'lru-cache'
import { WebhookError } from '../../errors.ts'
import type { IdempotencyStore } from '../../idempotency/store.ts'
import { measure } from '../../internal/maybe-promise.ts'
import { type ClaimedAttempt, ClaimedAttempts } from '../engine/claimed-attempts.ts'
import type { AcceptedEvent, CloseReport, ImmediateResult, Inbox, InboxHost } from '../inbox.ts'
import { noDeadLetters } from '../operations/dead-letters.ts'
import type { InboxStats } from '../reading.ts'
import type { EarlierAttempts } from './job.ts'

/** Failed events whose completed handlers are remembered. */
const maxFailed = 1_000

/** The memory inbox on Workers, where work ends with its request: no lanes, no retries, no dead letters. */
export class InRequestInbox implements Inbox {
  readonly deadLetters = noDeadLetters
  readonly #host: InboxHost
  readonly #attempts: ClaimedAttempts
  readonly #failed = new LRUCache<string, EarlierAttempts>({ max: maxFailed })

  constructor(host: InboxHost, store: Pick<IdempotencyStore, 'claims'>, leaseMs: number) {
    this.#host = host
    this.#attempts = new ClaimedAttempts(store, leaseMs, host.logger)
  }

  accept(): never {
    throw new WebhookError('invalid_option', "memoryInbox needs ack: 'handled'")
  }

  async handleNow(accepted: AcceptedEvent): Promise<ImmediateResult> {
    const { key } = accepted.event
    const { attempts, completed } = this.#failed.get(key) ?? { attempts: 0, completed: [] }
    const attempt = await this.#attempts.begin(accepted, attempts + 1)
    if (attempt === undefined) return 'in-progress'
    attempt.completed = completed
    try {
      const claim = await measure(this.#host.measured, 'claim', () => this.#attempts.claims.claim(key))
      return claim === 'claimed' ? await this.#handle(attempt) : claim === 'done' ? 'duplicate' : claim
    } finally {
      this.#attempts.end(attempt)
    }
  }

  async #handle(attempt: ClaimedAttempt): Promise<ImmediateResult> {
    const { claims } = this.#attempts
    const { key } = attempt.accepted.event
    const result = await this.#host.handle(attempt.accepted, attempt)
    if (result.status === 'done') {
      this.#failed.delete(key)
      await new Promise<void>((recorded) => claims.complete(key, recorded))
      return 'handled'
    }
    this.#failed.set(key, { attempts: attempt.number, completed: result.completed })
    if (!attempt.isDropped) await claims.release(key)
    return attempt.aborted ? 'in-progress' : 'failed'
  }

  stats(): InboxStats {
    return { waiting: 0, running: this.#attempts.running.length, retrying: 0, deadLetters: 0 }
  }

  /** Doesn't wait: the receiver has waited for the deliveries in flight. */
  async close(): Promise<CloseReport> {
    const { running: unfinished } = this.#attempts
    this.#attempts.stop()
    return { unfinished }
  }
}
