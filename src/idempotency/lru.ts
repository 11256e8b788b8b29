import { LRUCache } from 'lru-cache'
import { aFunction, checkOptions, maxCache, wholeNumber } from '../internal/check-options.ts'
import { ChurnMap } from '../internal/churn-map.ts'
import { type Claims, type IdempotencyStore, type StoreSteps, withClaims } from './store.ts'

/** The options of `lruStore`. */
export interface LruStoreOptions {
  /**
   * The number of finished keys that are remembered. The key that was seen least recently is forgotten first.
   * @defaultValue 100_000
   */
  readonly max?: number
  /**
   * The time for which a finished key is remembered, in ms.
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

/** Makes the LRU of finished keys. */
const finishedKeys = <Value extends string | true>({ max, ttlMs, now }: Required<LruStoreOptions>) =>
  // lru-cache never expires an entry that was added at time 0, and clocks in tests begin there.
  new LRUCache<string, Value>({ max, ttl: ttlMs, ttlResolution: 0, perf: { now: () => now() + 1 } })

interface LruLease {
  readonly owner: string
  expiresAt: number
}

/**
 * An idempotency store in this process's memory: a restart forgets it. Claims in progress are kept beside the LRU and
 * never evicted.
 * @throws WebhookError `invalid_option`
 */
export function lruStore(options: LruStoreOptions = {}): IdempotencyStore {
  checkOptions('lruStore', options, { max: wholeNumber(maxCache), ttlMs: wholeNumber(), now: aFunction })
  const { max = defaults.max, ttlMs = defaults.ttlMs, now = defaults.now } = options
  const leases = new ChurnMap<string, LruLease>()
  /** The owners that finished the keys. */
  const done = finishedKeys<string>({ max, ttlMs, now })

  /**
   * Returns true if `owner` may decide on the key: it holds the lease, or no owner holds one or has finished the key.
   */
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
  // Without leases: the store ends with the process, so no claim outlives its owner.
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

/**
 * The claims of an inbox that was given no store. Nothing else claims its keys, and it knows which of its events are in
 * progress. So there are no leases, and bundles without `lruStore` are smaller.
 */
export function ownClaims(): Claims {
  const done = finishedKeys<true>(defaults)
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
