import { checkedApart, checkOptions, type Rules, wholeNumber } from '../internal/check-options.ts'
import { crypto } from '../internal/realm.ts'
import {
  askObject,
  checkNamespace,
  defaultShards,
  type ObjectNamespace,
  shardOf,
} from '../internal/storage/durable-objects.ts'
import { defineStore } from './define-store.ts'
import type { ClaimInput, KeyInput, LeaseInput } from './durable-object/store-object.ts'
import type { Claim, IdempotencyStore } from './store.ts'

export { StoreObject } from './durable-object/store-object.ts'

/** The options of `durableObjectStore`. */
export interface DurableObjectStoreOptions {
  /** Binding to the class {@link StoreObject}. */
  readonly namespace: ObjectNamespace
  /**
   * Number of objects that share the keys. Don't change it later: keys would be looked up in the wrong object.
   * @defaultValue 16
   */
  readonly shards?: number
  /**
   * How long a finished key is remembered (ms).
   * @defaultValue 86_400_000 (24 h)
   */
  readonly ttlMs?: number
  /**
   * Time limit of a step, retries included (ms). Keep it below the sender's delivery timeout.
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
 * An idempotency store in Durable Objects, shared by all isolates. For `memoryInbox` and `queueInbox` on Workers.
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
      // Tells a retry, whose answer was lost, from a second claim by the same owner.
      const input: ClaimInput = { key, owner, leaseMs, claim: crypto.randomUUID() }
      return ask('claim', input) as Promise<Claim>
    },
    renew(key, owner, leaseMs) {
      const input: LeaseInput = { key, owner, leaseMs }
      return ask('renew', input) as Promise<boolean>
    },
    complete(key, owner) {
      // For a finished key, the lease is the ttl.
      const input: LeaseInput = { key, owner, leaseMs: ttlMs }
      return ask('complete', input) as Promise<boolean>
    },
    release: (key, owner) => ask('release', { key, owner }) as Promise<boolean>,
  })
}
