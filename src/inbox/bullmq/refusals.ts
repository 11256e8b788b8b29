import { type Redis, ReplyError } from 'ioredis'
import type { Logger } from '../../internal/logger.ts'
import { withoutCommand } from '../../storage/reach-redis.ts'
import type { OwnKeys } from './own-keys.ts'

/** A reason is logged again once Redis has not given it for this time (ms). */
const quietMs = 60_000

/** What the operator must do, by the error of Redis. Scripts of Redis 6 have the code in the middle of the message. */
const fixes: readonly (readonly [RegExp, string])[] = [
  [/\bMISCONF\b/, 'Redis cannot write to its disk: free some space, and look at its log'],
  [/\bOOM\b/, 'Redis is full: raise maxmemory, or discard dead letters'],
  [/\b(READONLY|MASTERDOWN)\b/, 'this server is a replica: connect to its master'],
  [/\bLOADING\b/, 'Redis is loading its data'],
  [/\bBUSY\b/, 'a script blocks Redis: SCRIPT KILL ends it'],
  [/\bCLUSTERDOWN\b/, 'the cluster has lost a master: look at CLUSTER INFO'],
  [/\b(CROSSSLOT|MOVED|ASK)\b|non local key/, "in Redis Cluster the queue's name needs a hash tag: '{media-webhooks}'"],
]

/** An ACL forbids it. Inside of scripts Redis names neither the command nor the key. */
const forbidden = /\bNOPERM\b|\bcan't (run this command|access at least one of the keys)/

/** Returns true if Redis was reached, and answered with an error. */
export const isRefusal = (error: unknown): error is Error => error instanceof Error && error.name === 'ReplyError'

/** Logs what Redis refuses, with the reason and the fix: one line a reason, however often it is refused. */
export class Refusals {
  readonly #client: Redis
  readonly #own: OwnKeys
  readonly #queue: string
  readonly #logger: Logger | undefined
  /** When each reason was last given (`performance.now()`, ms). */
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
   * Checks the rights, once a connection. BullMQ's script that adds an event keeps what it has written when Redis forbids one
   * of its commands, so the next delivery would be the duplicate of an event that nobody handles.
   * @throws ReplyError if one is missing
   */
  async checkRights(): Promise<void> {
    if (this.#hasRights) return
    const missing = await this.#own.run<string[]>('missingRights')
    if (missing.length > 0) throw new ReplyError(`NOPERM the ACL of the user lacks ${missing.join(' ')}`)
    this.#hasRights = true
  }

  /** Returns true if the error is a refusal. */
  note(error: unknown): boolean {
    // An error of the login is part of an outage, which the inbox logs.
    if (!isRefusal(error) || this.#client.status !== 'ready') return false
    // The hash and the line of the script differ from step to step.
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
      : (fixes.find(([pattern]) => pattern.test(reason))?.[1] ?? 'Look up the error in the documentation of Redis')
    const waiting = 'until then what needs it waits, and deliveries that need it are answered 503'
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
