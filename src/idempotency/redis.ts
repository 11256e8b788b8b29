import { anyText, checkedApart, checkOptions, type Rules, wholeNumber } from '../internal/check-options.ts'
import { crypto } from '../internal/realm.ts'
import { defineStore } from './define-store.ts'
import { type RedisClient, scriptRunner } from './redis-client.ts'
import type { Claim, IdempotencyStore, StoreSteps } from './store.ts'

export type { HttpRedisClient, IoredisClient, NodeRedisClient, RedisClient } from './redis-client.ts'

/** The options of `redisStore`. */
export interface RedisStoreOptions {
  /** An ioredis or node-redis client (cluster too), or `@upstash/redis`, which Workers need. You close it. */
  readonly client: RedisClient
  /**
   * Prefix of every key in Redis. Receivers with the same prefix share their events.
   * @defaultValue `media-webhooks:`
   */
  readonly prefix?: string
  /**
   * How long a finished key is remembered (ms).
   * @defaultValue 86_400_000 (24 h)
   */
  readonly ttlMs?: number
  /**
   * Time limit of a step, reconnecting included (ms). Keep it below the sender's delivery timeout.
   * @defaultValue 2_000
   */
  readonly timeoutMs?: number
}

// A key holds `claim:<nonce>:<owner>` for its lease, or `done:<owner>` for the ttl, both by the server's clock. The
// nonce identifies one claim call: a client resends a command whose answer was lost, and its first try must not count
// as taken.
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
 * An idempotency store in Redis, for receivers on several machines. Each step is one script on one key; leases expire
 * by the server's clock. It forgets what Redis evicts: set `maxmemory-policy` to `noeviction`.
 *
 * ```ts
 * import { Redis } from 'ioredis'
 * const inbox = memoryInbox({ store: redisStore({ client: new Redis(process.env.REDIS_URL!) }) })
 * ```
 * On Workers, pass an HTTP client:
 * ```ts
 * import { Redis } from '@upstash/redis/cloudflare'
 * const store = redisStore({ client: Redis.fromEnv(env) })
 * ```
 * A step waits up to `timeoutMs` for a disconnected Redis, then rejects with a WebhookError `unavailable`.
 * @throws WebhookError `invalid_option`
 */
export function redisStore(options: RedisStoreOptions): IdempotencyStore {
  checkOptions('redisStore', options, rules)
  const { client, prefix = 'media-webhooks:', ttlMs = 86_400_000, timeoutMs = 2_000 } = options ?? {}
  const run = scriptRunner(client, timeoutMs)
  // ioredis has an option to return numbers as strings, and HTTP clients may parse strings as numbers.
  const succeeds = async (script: string, key: string, ...parameters: string[]) =>
    Number(await run(script, prefix + key, parameters)) === 1
  let claims = 0
  let noncePrefix: string | undefined

  const steps = {
    async claim(key: string, owner: string, leaseMs: number) {
      // Lazy, because Workers allow no randomness at start-up.
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
