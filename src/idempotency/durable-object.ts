import { checkedApart, checkOptions, type Rules, wholeNumber } from '../internal/check-options.ts'
import { askObject, checkNamespace, defaultShards, type ObjectNamespace, shardOf } from '../storage/durable-objects.ts'
import { defineStore } from './define-store.ts'
import type { ClaimInput, KeyInput, LeaseInput } from './durable-object/store-object.ts'
import type { Claim, IdempotencyStore } from './store.ts'

export { StoreObject } from './durable-object/store-object.ts'

/** The options of `durableObjectStore`. */
export interface DurableObjectStoreOptions {
  /** The binding to the class {@link StoreObject}. */
  readonly namespace: ObjectNamespace
  /**
   * The number of objects that share the keys. Choose it once: after a change, keys are looked for in other objects.
   * @defaultValue 16
   */
  readonly shards?: number
  /**
   * The time for which a finished key is remembered, in ms.
   * @defaultValue 86_400_000 (24 h)
   */
  readonly ttlMs?: number
  /**
   * The time limit of a step, repeated tries included, in ms. Keep it below the time that the sender gives a delivery.
   * @defaultValue 2_000
   */
  readonly timeoutMs?: number
}

const rules: Rules<DurableObjectStoreOptions> = {
  namespace: checkedApart,
  shards: wholeNumber(),
  ttlMs: wholeNumber(),
  timeoutMs: wholeNumber(),
}

/**
 * An idempotency store in Durable Objects, for `memoryInbox` and `queueInbox` on Workers: every isolate of the Worker sees
 * the same keys.
 *
 * ```ts
 * export { StoreObject } from 'media-webhooks/cloudflare'
 *
 * const store = durableObjectStore({ namespace: env.MEDIA_KEYS })
 * const inbox = queueInbox({ send: (message) => env.QUEUE.send(message), store })
 * ```
 * @throws WebhookError `invalid_option`
 */
export function durableObjectStore(options: DurableObjectStoreOptions): IdempotencyStore {
  checkOptions('durableObjectStore', options, rules)
  const { namespace, shards = defaultShards, ttlMs = 86_400_000, timeoutMs = 2_000 } = options ?? {}
  checkNamespace('durableObjectStore', namespace, 'env.MEDIA_KEYS')
  const ask = async (step: string, input: KeyInput) => {
    const name = `media-webhooks-keys-${shardOf(input.key, shards)}`
    return askObject(namespace, { name, step, input, canRepeat: true }, timeoutMs)
  }
  return defineStore({
    claim(key, owner, leaseMs) {
      // Distinguishes a repeated claim, whose answer was lost, from another claim of the same owner.
      const input: ClaimInput = { key, owner, leaseMs, claim: crypto.randomUUID() }
      return ask('claim', input) as Promise<Claim>
    },
    renew(key, owner, leaseMs) {
      const input: LeaseInput = { key, owner, leaseMs }
      return ask('renew', input) as Promise<boolean>
    },
    complete(key, owner) {
      // The object keeps a finished key for as long as a lease: the ttl.
      const input: LeaseInput = { key, owner, leaseMs: ttlMs }
      return ask('complete', input) as Promise<boolean>
    },
    release: (key, owner) => ask('release', { key, owner }) as Promise<boolean>,
  })
}
