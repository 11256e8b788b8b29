import { type Cluster, Redis, type RedisOptions } from 'ioredis'
import type { Logger } from '../../internal/logger.ts'
import { type Timer, unref } from '../../internal/timers.ts'
import { withoutCommand } from '../../storage/reach-redis.ts'
import { isClient, type RedisConnection } from './check-connection.ts'
import { isRefusal } from './refusals.ts'

// BullMQ needs these settings: it does not repeat its steps at start-up, and its blocking commands have no time limit.
const required = { maxRetriesPerRequest: null, enableOfflineQueue: true, lazyConnect: false } as const

/** The pauses between two attempts to connect, in ms. */
const minDelayMs = 50
const maxDelayMs = 1_000

/** The time for which a connection to a replica is kept, in ms. */
const replicaGraceMs = 500

/**
 * Makes INFO answer even if Redis refuses it, here and in the client's duplicates. BullMQ asks for the version once, and after
 * an error it fails every later step at once and for ever: an ACL may forbid INFO, and a script that blocks Redis does so for
 * a while.
 */
function harden(client: Redis): Redis {
  const info = (...parameters: readonly unknown[]) => {
    const last = parameters.at(-1)
    const answer = client.call('info', ...parameters.filter((each) => typeof each === 'string'))
    const permitted = answer.catch((error: unknown) => {
      if (isRefusal(error)) return minVersion
      throw error
    })
    if (typeof last === 'function') permitted.then((text) => last(null, text), last as (error: unknown) => void)
    return permitted
  }
  client.on('error', (error: Error & { readonly command?: { readonly name?: string } }) => {
    // ioredis would go on in database 0. It connects again until the database is there.
    if (error.command?.name === 'select') client.disconnect(true)
  })
  const make = client.duplicate.bind(client) as (...options: unknown[]) => Redis
  return Object.assign(client, { info, duplicate: (...options: unknown[]) => harden(make(...options)) })
}

/** The oldest version that BullMQ does not warn of. Redis has ACLs since 6.0. */
const minVersion = 'redis_version:6.2.0\r\n'

/** Connects to Redis, again and again until it is closed. Commands wait meanwhile; `EventQueue.reach` does not. */
export function connect(connection: RedisConnection): Redis {
  let replicaSeenAt = Number.NEGATIVE_INFINITY
  // Connects again if the server has become a replica: after a failover, an open connection stays with the former master.
  const reconnectOnError = ({ message }: Error) => {
    // Every pending command gets the same answer, and a connection to a replica succeeds.
    if (!/\bREADONLY\b/.test(message) || performance.now() - replicaSeenAt < replicaGraceMs) return false
    replicaSeenAt = performance.now()
    return true
  }
  const retryStrategy = (times: number) => Math.min(times * minDelayMs, maxDelayMs)
  const client = harden(open(connection, { retryStrategy, reconnectOnError }))
  // Every failed attempt to reconnect emits an error. `reach` reports the outage to its callers.
  return client.on('error', () => {})
}

function open(connection: RedisConnection, options: RedisOptions): Redis {
  if (typeof connection === 'string' || 'href' in connection)
    return new Redis(String(connection), { ...options, ...required }) as Redis
  if (!isClient(connection)) return new Redis({ ...options, ...connection, ...required } as RedisOptions) as Redis
  if (!connection.isCluster) return (connection as Redis).duplicate({ ...options, ...required }) as Redis
  const { redisOptions } = (connection as Cluster).options
  // The part of a cluster's client that is used is that of a server's.
  return (connection as Cluster).duplicate(undefined, {
    redisOptions: { ...redisOptions, ...required },
  }) as unknown as Redis
}

/** Does work each time a client has connected, and every minute. */
export function everyMinute(client: Redis, work: () => Promise<void>): void {
  client.on('ready', work)
  const timer = setInterval(() => client.status === 'ready' && work(), 60_000)
  timer.unref()
  client.once('end', () => clearInterval(timer))
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
