import { Redis, type RedisOptions } from 'ioredis'
import type { Logger } from '../../internal/logger.ts'
import { type Timer, unref } from '../../internal/timers.ts'
import { withoutCommand } from '../../storage/reach-redis.ts'

// BullMQ needs these: it does not repeat what it does at start-up, and it blocks for as long as it likes.
const required = { maxRetriesPerRequest: null, enableOfflineQueue: true, lazyConnect: false } as const

/** The pauses between two attempts to connect, in ms. */
const leastPauseMs = 50
const longestPauseMs = 1_000

/** Connects to Redis, again and again until it is closed. Commands wait meanwhile; `EventQueue.reach` does not. */
export function connect(connection: string | RedisOptions): Redis {
  const retries = new Retries()
  const options = { retryStrategy: (times: number) => retries.pauseMs(times) }
  const reconnectOnError = (error: Error) => retries.reconnects(error)
  const client =
    typeof connection === 'string'
      ? new Redis(connection, { ...options, reconnectOnError, ...required })
      : new Redis({ ...options, reconnectOnError, ...connection, ...required })
  // Every failed attempt to reconnect emits one; `reach` reports the outage to its callers.
  return client.on('error', () => {})
}

/** The reconnections of the client, and of those that BullMQ makes of it. */
class Retries {
  /** The number of times in a row that the server was a replica, and the time at which it last was. */
  #asReplica = 0
  #foundAt = Number.NEGATIVE_INFINITY

  /**
   * Connects again where the server has become a replica: after a failover an open connection leads to the former master
   * for ever.
   */
  reconnects(error: Error): boolean {
    const sinceMs = performance.now() - this.#foundAt
    // A connection that is being closed gives the same answer to every command that was on its way.
    if (!/\bREADONLY\b/.test(error.message) || sinceMs < leastPauseMs) return false
    this.#asReplica = sinceMs > 5 * longestPauseMs ? 1 : this.#asReplica + 1
    this.#foundAt = performance.now()
    return true
  }

  /** A connection to a replica succeeds, so that ioredis counts no failure. */
  pauseMs(times: number): number {
    const recent = performance.now() - this.#foundAt < longestPauseMs ? this.#asReplica : 0
    return Math.min(Math.max(times, recent) * leastPauseMs, longestPauseMs)
  }
}

/** Logs outages. */
export function watchConnection(client: Redis, logger: Logger, isClosing: () => boolean): void {
  let isLost = false
  let timer: Timer | undefined
  const lost = (reason: string) => {
    if (isLost || isClosing()) return
    isLost = true
    logger.error({}, `there is no connection to Redis (${reason}); deliveries are answered 503 until it is back`)
  }
  client.on('error', (error) => {
    const reason = reasonOf(error)
    // That of a connection which breaks is emitted before it is closed.
    if (client.status !== 'ready') lost(reason)
  })
  client.on('close', () => {
    // It may be back at once. Every failed attempt to connect emits this, too.
    timer ??= setTimeout(() => lost('it was closed'), outageMs)
    unref(timer)
  })
  client.on('ready', () => {
    clearTimeout(timer)
    timer = undefined
    if (isLost) logger.info({}, 'the connection to Redis is restored')
    isLost = false
  })
}

/** The time after which a connection that was closed is an outage although no attempt to connect failed, in ms. */
const outageMs = 1_000

/** Says why a connection failed. A host with several addresses fails with an error that has a code and no message. */
function reasonOf(error: Error & { readonly code?: unknown }): string {
  withoutCommand(error)
  return error.message || String(error.code ?? error.name)
}
