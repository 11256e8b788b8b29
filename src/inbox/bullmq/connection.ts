import { Redis, type RedisOptions } from 'ioredis'
import type { Logger } from '../../internal/logger.ts'
import { type Timer, unref } from '../../internal/timers.ts'
import { withoutCommand } from '../../storage/reach-redis.ts'

// BullMQ needs these settings: it does not repeat its steps at start-up, and its blocking commands have no time limit.
const required = { maxRetriesPerRequest: null, enableOfflineQueue: true, lazyConnect: false } as const

/** The pauses between two attempts to connect, in ms. */
const leastPauseMs = 50
const longestPauseMs = 1_000

/** Connects to Redis, again and again until it is closed. Commands wait meanwhile; `EventQueue.reach` does not. */
export function connect(connection: string | RedisOptions): Redis {
  // The number of times in a row that the server was a replica, and the time of the last one.
  let asReplica = 0
  let foundAt = Number.NEGATIVE_INFINITY
  // Connects again if the server has become a replica: after a failover, an open connection stays with the former master.
  const reconnectOnError = (error: Error) => {
    const sinceMs = performance.now() - foundAt
    // While a connection closes, every pending command gets the same answer.
    if (!/\bREADONLY\b/.test(error.message) || sinceMs < leastPauseMs) return false
    asReplica = sinceMs > 5 * longestPauseMs ? 1 : asReplica + 1
    foundAt = performance.now()
    return true
  }
  // A connection to a replica succeeds, so that ioredis counts no failure.
  const retryStrategy = (times: number) => {
    const recent = performance.now() - foundAt < longestPauseMs ? asReplica : 0
    return Math.min(Math.max(times, recent) * leastPauseMs, longestPauseMs)
  }
  const options = { retryStrategy, reconnectOnError }
  const client =
    typeof connection === 'string'
      ? new Redis(connection, { ...options, ...required })
      : new Redis({ ...options, ...connection, ...required })
  // Every failed attempt to reconnect emits an error. `reach` reports the outage to its callers.
  return client.on('error', () => {})
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
    // When a connection breaks, its error is emitted before it is closed.
    if (client.status !== 'ready') lost(reason)
  })
  client.on('close', () => {
    // The connection may be back immediately. Every failed attempt to connect also emits this event.
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

/** The time until a closed connection counts as an outage, in ms, if no attempt to connect has failed. */
const outageMs = 1_000

/** Says why a connection failed. A host with several addresses fails with an error that has a code and no message. */
function reasonOf(error: Error & { readonly code?: unknown }): string {
  withoutCommand(error)
  return error.message || String(error.code ?? error.name)
}
