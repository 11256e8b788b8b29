import { type Redis, ReplyError } from 'ioredis'
import type { Logger } from '../../internal/logger.ts'
import { withoutCommand } from '../../internal/storage/reach-redis.ts'
import type { OwnKeys } from './own-keys.ts'

/** Quiet time before the same reason is logged again (ms). */
const quietMs = 60_000

/** The fix per Redis error. Scripts on Redis 6 have the code mid-message. */
const fixes: readonly (readonly [RegExp, string])[] = [
  [/\bMISCONF\b/, 'Redis cannot write to disk: free some space and check its log'],
  [/\bOOM\b/, 'Redis is full: raise maxmemory, or discard dead letters'],
  [/\b(READONLY|MASTERDOWN)\b/, 'this server is a replica: connect to its master'],
  [/\bLOADING\b/, 'Redis is loading its data'],
  [/\bBUSY\b/, 'a script blocks Redis: SCRIPT KILL ends it'],
  [/\bCLUSTERDOWN\b/, 'the cluster has lost a master: check CLUSTER INFO'],
  [
    /\b(MOVED|ASK)\b/,
    "this is one node of a Redis Cluster: pass a Cluster of ioredis, and a queue such as '{media-webhooks}'",
  ],
  [/\bCROSSSLOT\b|non local key/, "in Redis Cluster the queue's name must have a hash tag: '{media-webhooks}'"],
]

/** Forbidden by an ACL. Inside scripts, Redis names neither command nor key. */
const forbidden = /\bNOPERM\b|\bcan't (run this command|access at least one of the keys)/

export const isRefusal = (error: unknown): error is Error => error instanceof Error && error.name === 'ReplyError'

/** Logs why Redis refuses steps, and the fix: one line per reason, throttled. */
export class Refusals {
  readonly #client: Redis
  readonly #own: OwnKeys
  readonly #queue: string
  readonly #logger: Logger | undefined
  /** Last occurrence of each reason (`performance.now()`, ms). */
  readonly #reasons = new Map<string, number>()

  #hasRights = false

  constructor(client: Redis, own: OwnKeys, queue: string, logger: Logger | undefined) {
    this.#client = client
    this.#own = own
    this.#queue = queue
    this.#logger = logger
    client.on('ready', () => {
      this.#hasRights = false
    })
  }

  /**
   * Checks the ACL, once per connection. If Redis forbids a command halfway through BullMQ's script, the writes so far
   * stay: the next delivery would be the duplicate of an event that nobody handles.
   * @throws ReplyError if a right is missing
   */
  async checkRights(): Promise<void> {
    if (this.#hasRights) return
    const missing = await this.#own.run<string[]>('missingRights')
    if (missing.length > 0) throw new ReplyError(`NOPERM the ACL of the user lacks ${missing.join(' ')}`)
    this.#hasRights = true
  }

  /** Returns true if the error is a refusal. */
  note(error: unknown): boolean {
    // A failed login is part of an outage, which the inbox logs.
    if (!isRefusal(error) || this.#client.status !== 'ready') return false
    // Drop the script's hash and line, which differ from step to step.
    const reason = error.message.replace(/\.?( script: [\s\S]*)?$/, '')
    const now = performance.now()
    const before = this.#reasons.get(reason) ?? Number.NEGATIVE_INFINITY
    this.#reasons.set(reason, now)
    if (now - before > quietMs) void this.#log(error, reason)
    return true
  }

  async #log(error: Error, reason: string): Promise<void> {
    const fix = forbidden.test(reason)
      ? `Its user needs ${await this.#missingRights(reason)}`
      : (fixes.find(([pattern]) => pattern.test(reason))?.[1] ?? 'Look up the error in the Redis docs')
    const waiting = 'until then, work that needs it waits and deliveries are answered 503'
    this.#logger?.error(
      { err: withoutCommand(error) },
      `Redis refuses a step of the inbox (${reason}). ${fix}; ${waiting}`,
    )
  }

  async #missingRights(reason: string): Promise<string> {
    const patterns = `~bull:${this.#queue}:* ~${this.#own.prefix}*`
    const all = `the rights and the key patterns ${patterns} that docs/inbox-bullmq.md lists`
    const command = /'([\w|]+)' command/.exec(reason)?.[1]
    if (command !== undefined) return `+${command}, and ${all}`
    const missing = await this.#own.run<string[]>('missingRights').catch(() => [])
    return missing.length === 0 ? all : `${missing.join(' ')}, and ${all}`
  }
}
