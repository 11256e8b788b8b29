import { WebhookError } from '../errors.ts'
import { checkNumbers } from '../internal/check-options.ts'
import { defineStore } from './define-store.ts'
import { type RedisClient, scriptRunner } from './redis-client.ts'
import type { Claim, IdempotencyStore } from './store.ts'

export type { IoredisClient, NodeRedisClient, RedisClient } from './redis-client.ts'

/** The options of `redisStore`. */
export interface RedisStoreOptions {
  /** A client of ioredis or node-redis, of one server or of a cluster. The store does not close it. */
  readonly client: RedisClient
  /**
   * The prefix of every key in Redis. Receivers that share it share their events.
   * @defaultValue `media-webhooks:`
   */
  readonly prefix?: string
  /**
   * How long a finished key is remembered, in ms.
   * @defaultValue 86_400_000 (24 h)
   */
  readonly ttlMs?: number
  /**
   * How long a step may wait for Redis, in ms. Keep it below the time that the sender gives a delivery.
   * @defaultValue 2_000
   */
  readonly timeoutMs?: number
}

// A key holds `claim:<owner>` until its lease has run out by the server's clock, or `done:<owner>` for the ttl.
const held = "local held, mine = redis.call('GET', KEYS[1]), 'claim:' .. ARGV[1]"

const claim = `${held}
if not held then redis.call('SET', KEYS[1], mine, 'PX', ARGV[2]) return 'claimed' end
if held:sub(1, 5) == 'done:' then return 'done' end
return 'in-progress'`

const renew = `${held}
if held and held ~= mine then return 0 end
redis.call('SET', KEYS[1], mine, 'PX', ARGV[2])
return 1`

const complete = `${held}
local done = 'done:' .. ARGV[1]
if held == done then return 1 end
if held and held ~= mine then return 0 end
redis.call('SET', KEYS[1], done, 'PX', ARGV[2])
return 1`

const release = `${held}
if held ~= mine then return 0 end
return redis.call('DEL', KEYS[1])`

/**
 * An idempotency store in Redis, for receivers on several machines. Each step is one script on one key, and leases run
 * out by the clock of the server. It forgets what Redis evicts: set `maxmemory-policy` to `noeviction`.
 *
 * ```ts
 * import { Redis } from 'ioredis'
 * const inbox = memoryInbox({ store: redisStore({ client: new Redis(process.env.REDIS_URL!) }) })
 * ```
 * Its steps reject with a WebhookError `unavailable` while Redis is disconnected, after `timeoutMs` at the latest.
 * @throws WebhookError `invalid_option`
 */
export function redisStore(options: RedisStoreOptions): IdempotencyStore {
  const { client, prefix = 'media-webhooks:', ttlMs = 86_400_000, timeoutMs = 2_000 } = options
  checkNumbers('redisStore', { ttlMs, timeoutMs })
  if (typeof prefix !== 'string') throw new WebhookError('invalid_option', 'redisStore: prefix has to be a string')
  const run = scriptRunner(client, timeoutMs)
  // ioredis can be told to write numbers as strings.
  const decide = async (script: string, key: string, ...parameters: string[]) =>
    Number(await run(script, prefix + key, ...parameters)) === 1

  return defineStore({
    claim: async (key, owner, leaseMs) => String(await run(claim, prefix + key, owner, `${leaseMs}`)) as Claim,
    renew: (key, owner, leaseMs) => decide(renew, key, owner, `${leaseMs}`),
    complete: (key, owner) => decide(complete, key, owner, `${ttlMs}`),
    release: (key, owner) => decide(release, key, owner),
  })
}
