import { ownClaims } from '../idempotency/lru.ts'
import type { IdempotencyStore } from '../idempotency/store.ts'
import { checkOptions, having, maxCache, type Rules, wholeNumber } from '../internal/check-options.ts'
import { requestsEndWork } from '../internal/requests.ts'
import { defineInbox } from './define-inbox.ts'
import type { Inbox, InboxDefinition, InboxHost } from './inbox.ts'
import { ClaimingInbox } from './memory/claiming.ts'
import { InRequestInbox } from './memory/in-request.ts'
import { MemoryInbox } from './memory/inbox.ts'

/** The options of `memoryInbox`. */
export interface MemoryInboxOptions {
  /**
   * Remembers claimed and handled events. Machines that share one handle no event twice. Closing the inbox leaves it
   * open.
   * @defaultValue `lruStore()`
   */
  readonly store?: IdempotencyStore
  /**
   * Lease of a claim (ms), renewed every third of it.
   * @defaultValue 5_000
   */
  readonly leaseMs?: number
  /**
   * Events handled at a time.
   * @defaultValue 16
   */
  readonly concurrency?: number
  /**
   * Maximum number of events waiting for a slot or a retry. Scales the memory limit too (64 MiB at the default). Beyond
   * either, deliveries are answered 503.
   * @defaultValue 10_000
   */
  readonly maxWaiting?: number
  /**
   * Newest dead letters kept, besides 100 unreadable ones. Scales their memory limit too (32 MiB at the default).
   * @defaultValue 1_000
   */
  readonly maxDeadLetters?: number
}

/**
 * An inbox in process memory. Slow handlers, bursts and an orderly shutdown lose nothing; a crash loses every
 * acknowledged event that was not handled yet.
 * @throws WebhookError `invalid_option`
 */
export function memoryInbox(options: MemoryInboxOptions = {}): InboxDefinition {
  checkOptions('memoryInbox', options, rules)
  const { store, leaseMs = 5_000, concurrency = 16, maxWaiting = 10_000, maxDeadLetters = 1_000 } = options
  const settings = { concurrency, maxWaiting, maxDeadLetters }
  const open = (host: InboxHost): Inbox => {
    if (requestsEndWork) return new InRequestInbox(host, store ?? { claims: ownClaims }, leaseMs)
    if (store === undefined && host.ack !== 'handled') return new MemoryInbox(host, settings)
    return new ClaimingInbox(host, settings, store ?? { claims: ownClaims }, leaseMs)
  }
  return defineInbox({
    name: 'memoryInbox',
    handlesNow: true,
    // With a shared store, the event that ends an expectation may reach another process.
    expects: store === undefined || store.isLocal,
    ordersStrictly: store === undefined || store.isLocal,
    limits: !requestsEndWork,
    storage: 'memory',
    localKeys: store === undefined || store.isLocal,
    open,
  })
}

const rules: Rules<MemoryInboxOptions> = {
  store: having('lruStore(), redisStore() or the result of defineStore()', 'claims'),
  leaseMs: wholeNumber(),
  concurrency: wholeNumber(),
  maxWaiting: wholeNumber(),
  maxDeadLetters: wholeNumber(maxCache),
}
