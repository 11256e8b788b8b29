import { LRUCache } from 'lru-cache'
import { aFunction, checkOptions, maxCache, wholeNumber } from '../internal/check-options.ts'
import { ChurnMap } from '../internal/churn-map.ts'
import { type Claims, type IdempotencyStore, type StoreSteps, withClaims } from './store.ts'

/** The options of `lruStore`. */
export interface LruStoreOptions {
  /**
   * Maximum number of finished keys. The least recently seen is forgotten first.
   * @defaultValue 100_000
   */
  readonly max?: number
  /**
   * How long a finished key is remembered (ms).
   * @defaultValue 86_400_000 (24 h)
   */
  readonly ttlMs?: number
  /**
   * The clock, in ms.
   * @defaultValue performance.now
   */
  readonly now?: () => number
}

const defaults = { max: 100_000, ttlMs: 86_400_000, now: () => performance.now() }

/** Keys of finished events. Not the cache's own type: its declarations need those of Node. */
export interface FinishedKeys<Value> {
  get(key: string): Value | undefined
  peek(key: string): Value | undefined
  has(key: string): boolean
  set(key: string, value: Value): unknown
}

export const finishedKeys = <Value extends string | true>({
  max,
  ttlMs,
  now,
}: Required<LruStoreOptions> = defaults): FinishedKeys<Value> =>
  // lru-cache never expires an entry added at time 0, where test clocks begin.
  new LRUCache<string, Value>({ max, ttl: ttlMs, ttlResolution: 0, perf: { now: () => now() + 1 } })

interface LruLease {
  readonly owner: string
  expiresAt: number
}

/**
 * An idempotency store in memory, lost at a restart. Claims in progress live beside the LRU and are never evicted.
 * @throws WebhookError `invalid_option`
 */
export function lruStore(options: LruStoreOptions = {}): IdempotencyStore {
  checkOptions('lruStore', options, { max: wholeNumber(maxCache), ttlMs: wholeNumber(), now: aFunction })
  const { max = defaults.max, ttlMs = defaults.ttlMs, now = defaults.now } = options
  const leases = new ChurnMap<string, LruLease>()
  /** Finished key to its owner. */
  const done = finishedKeys<string>({ max, ttlMs, now })

  /** `owner` holds the lease, or nobody does and the key is not finished. */
  const mayWrite = (key: string, owner: string): boolean => {
    const lease = leases.get(key)
    return lease === undefined ? !done.has(key) : lease.owner === owner
  }

  const steps: StoreSteps = {
    isLocal: true,
    claim(key, owner, leaseMs) {
      if (done.get(key) !== undefined) return 'done'
      const lease = leases.get(key)
      const time = now()
      if (lease !== undefined && lease.expiresAt > time) return 'in-progress'
      leases.set(key, { owner, expiresAt: time + leaseMs })
      return 'claimed'
    },
    renew(key, owner, leaseMs) {
      if (!mayWrite(key, owner)) return false
      leases.set(key, { owner, expiresAt: now() + leaseMs })
      return true
    },
    complete(key, owner) {
      if (!mayWrite(key, owner) && done.peek(key) !== owner) return false
      leases.delete(key)
      done.set(key, owner)
      return true
    },
    release(key, owner) {
      return leases.get(key)?.owner === owner && leases.delete(key)
    },
  }

  let inboxes = 0
  // No leases: the store dies with the process, so no claim outlives its owner.
  return withClaims(steps, ({ leaseMs }) => {
    const owner = `inbox ${++inboxes}`
    return {
      claim: (key) => steps.claim(key, owner, Number.POSITIVE_INFINITY),
      complete(key, recorded) {
        steps.complete(key, owner)
        recorded()
      },
      async release(key) {
        steps.release(key, owner)
      },
      stop() {
        const expiresAt = now() + leaseMs
        for (const [, lease] of leases) if (lease.owner === owner) lease.expiresAt = expiresAt
      },
    }
  })
}

/** Claims of an inbox without a store: nobody else claims its keys. Separate from `lruStore` to keep bundles small. */
export function ownClaims(): Claims {
  const done = finishedKeys<true>()
  return {
    claim: (key) => (done.get(key) === undefined ? 'claimed' : 'done'),
    complete(key, recorded) {
      done.set(key, true)
      recorded()
    },
    release: async () => {},
    stop() {},
  }
}
