import { anyText, checkedApart, checkOptions, type Rules, wholeNumber } from '../internal/check-options.ts'
import { defineStore } from './define-store.ts'
import { type RedisClient, scriptRunner } from './redis-client.ts'
import type { Claim, IdempotencyStore, StoreSteps } from './store.ts'

export type { HttpRedisClient, IoredisClient, NodeRedisClient, RedisClient } from './redis-client.ts'

/** The options of `redisStore`. */
export interface RedisStoreOptions {
  /**
   * A client of ioredis or node-redis, of one server or of a cluster, or one that speaks HTTP, such as that of
   * `@upstash/redis`. On Workers only the last works. The store does not close it.
   */
  readonly client: RedisClient
  /**
   * The prefix of every key in Redis. Receivers that share it share their events.
   * @defaultValue `media-webhooks:`
   */
  readonly prefix?: string
  /**
   * The time for which a finished key is remembered, in ms.
   * @defaultValue 86_400_000 (24 h)
   */
  readonly ttlMs?: number
  /**
   * The time limit of a step in Redis, a reconnection included, in ms. Keep it below the time that the sender gives a
   * delivery.
   * @defaultValue 2_000
   */
  readonly timeoutMs?: number
}

// A key holds `claim:<nonce>:<owner>` until its lease has run out by the server's clock, or `done:<owner>` for the ttl. The
// nonce is that of one call: a client repeats a claim whose answer was lost, and it must not find the key taken by
// itself.
const claim = `local held, mine = redis.call('GET', KEYS[1]), 'claim:' .. ARGV[3] .. ':' .. ARGV[1]
if not held or held == mine then redis.call('SET', KEYS[1], mine, 'PX', ARGV[2]) return 'claimed' end
if held:sub(1, 5) == 'done:' then return 'done' end
return 'in-progress'`

const held = `local held = redis.call('GET', KEYS[1])
local isMine = held and held:match('^claim:[^:]*:(.*)$') == ARGV[1]
`

const renew = `${held}
if held and not isMine then return 0 end
redis.call('SET', KEYS[1], held or 'claim::' .. ARGV[1], 'PX', ARGV[2])
return 1`

const complete = `${held}
local done = 'done:' .. ARGV[1]
if held and held ~= done and not isMine then return 0 end
redis.call('SET', KEYS[1], done, 'PX', ARGV[2])
return 1`

const release = `${held}
if not isMine then return 0 end
return redis.call('DEL', KEYS[1])`

const rules: Rules<RedisStoreOptions> = {
  client: checkedApart,
  prefix: anyText,
  ttlMs: wholeNumber(),
  timeoutMs: wholeNumber(),
}

/**
 * An idempotency store in Redis, for receivers on several machines. Each step is one script on one key, and leases run
 * out by the clock of the server. It forgets what Redis evicts: set `maxmemory-policy` to `noeviction`.
 *
 * ```ts
 * import { Redis } from 'ioredis'
 * const inbox = memoryInbox({ store: redisStore({ client: new Redis(process.env.REDIS_URL!) }) })
 * ```
 * On Workers, give it a client that speaks HTTP:
 * ```ts
 * import { Redis } from '@upstash/redis/cloudflare'
 * const store = redisStore({ client: Redis.fromEnv(env) })
 * ```
 * Its steps wait up to `timeoutMs` for a Redis that is disconnected. After that, they reject with a WebhookError
 * `unavailable`.
 * @throws WebhookError `invalid_option`
 */
export function redisStore(options: RedisStoreOptions): IdempotencyStore {
  checkOptions('redisStore', options, rules)
  const { client, prefix = 'media-webhooks:', ttlMs = 86_400_000, timeoutMs = 2_000 } = options ?? {}
  const run = scriptRunner(client, timeoutMs)
  // ioredis can be told to write numbers as strings, and clients over HTTP can read strings as numbers.
  const succeeds = async (script: string, key: string, ...parameters: string[]) =>
    Number(await run(script, prefix + key, parameters)) === 1
  let claims = 0
  let noncePrefix: string | undefined

  const steps = {
    async claim(key: string, owner: string, leaseMs: number) {
      // It is made at the first claim: Workers give out no random numbers at start-up.
      noncePrefix ??= crypto.randomUUID().slice(0, 8)
      const nonce = `${noncePrefix}${(claims++).toString(36)}`
      const release = (answer: unknown) => {
        if (answer === 'claimed') steps.release(key, owner).catch(() => {})
      }
      return String(await run(claim, prefix + key, [owner, `${leaseMs}`, nonce], release)) as Claim
    },
    renew: (key: string, owner: string, leaseMs: number) => succeeds(renew, key, owner, `${leaseMs}`),
    complete: (key: string, owner: string) => succeeds(complete, key, owner, `${ttlMs}`),
    release: (key: string, owner: string) => succeeds(release, key, owner),
  } satisfies StoreSteps
  return defineStore(steps)
}
