import { Cluster, Redis, type RedisOptions } from 'ioredis'
import type { Logger } from '../../internal/logger.ts'
import { withoutCommand } from '../../internal/storage/reach-redis.ts'
import { type Timer, unref } from '../../internal/timers.ts'
import { isClient, type RedisConnection } from './check-connection.ts'
import { isRefusal } from './refusals.ts'

// Required by BullMQ: it doesn't retry its start-up steps, and its blocking commands have no time limit.
const required = { maxRetriesPerRequest: null, enableOfflineQueue: true, lazyConnect: false } as const

/** Reconnect delays (ms). */
const minDelayMs = 50
const maxDelayMs = 1_000

/** How long a connection to a replica is kept before the next reconnect (ms). */
const replicaGraceMs = 500

/**
 * Makes INFO succeed even if Redis refuses it, on this client and its duplicates. BullMQ asks for the version once, and
 * after an error fails every later step for good. An ACL may forbid INFO; a blocking script refuses it for a while.
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
    // ioredis would go on in database 0. Reconnect until the database exists.
    if (error.command?.name === 'select') client.disconnect(true)
  })
  const make = client.duplicate.bind(client) as (...options: unknown[]) => Redis
  return Object.assign(client, { info, duplicate: (...options: unknown[]) => harden(make(...options)) })
}

/** The oldest version that BullMQ doesn't warn about. ACLs exist since 6.0. */
const minVersion = 'redis_version:6.2.0\r\n'

/** Connects to Redis, and reconnects until closed. Commands wait meanwhile, except through `EventQueue.reach`. */
export function connect(connection: RedisConnection): Redis {
  let replicaSeenAt = Number.NEGATIVE_INFINITY
  // After a failover, an open connection stays with the old master, now a replica. Reconnect.
  const reconnectOnError = ({ message }: Error) => {
    // Every pending command fails with this error: reconnect once. The next server may still be a replica.
    if (!/\bREADONLY\b/.test(message) || performance.now() - replicaSeenAt < replicaGraceMs) return false
    replicaSeenAt = performance.now()
    return true
  }
  const retryStrategy = (times: number) => Math.min(times * minDelayMs, maxDelayMs)
  const client = harden(open(connection, { retryStrategy, reconnectOnError }))
  // Every failed reconnect emits an error. `reach` reports the outage to its callers.
  return client.on('error', () => {})
}

function open(connection: RedisConnection, options: RedisOptions): Redis {
  if (typeof connection === 'string' || 'href' in connection)
    return new Redis(String(connection), { ...options, ...required }) as Redis
  if (!isClient(connection)) return new Redis({ ...options, ...connection, ...required } as RedisOptions) as Redis
  if (!connection.isCluster) return (connection as Redis).duplicate({ ...options, ...required }) as Redis
  const { redisOptions } = (connection as Cluster).options
  // A cluster client works like a `Redis` for what we use.
  return (connection as Cluster).duplicate(undefined, {
    lazyConnect: false,
    redisOptions: { ...redisOptions, ...required },
  }) as unknown as Redis
}

/** A URL may name any node of a Redis Cluster. Returns a client of the cluster then, not connected yet. */
export async function findCluster(connection: RedisConnection): Promise<RedisConnection> {
  if (typeof connection !== 'string' && (isClient(connection) || 'sentinels' in connection)) return connection
  const node = open(connection, { retryStrategy: () => null })
  // An error is left to the connection of the inbox, which says more about it.
  const info = await node
    .on('error', () => {})
    .info('cluster')
    .catch(() => '')
  node.disconnect()
  if (!info.includes('cluster_enabled:1')) return connection
  const { host, port } = node.options
  return new Cluster([{ host, port } as { host: string; port: number }], {
    lazyConnect: true,
    redisOptions: node.options,
  })
}

/** Runs work on every connect, and every minute. */
export function everyMinute(client: Redis, work: () => Promise<void>): void {
  client.on('ready', work)
  const timer = setInterval(() => client.status === 'ready' && work(), 60_000)
  unref(timer)
  client.once('end', () => clearInterval(timer))
}

export function watchConnection(client: Redis, logger: Logger, isClosing: () => boolean): void {
  let isLost = false
  let timer: Timer | undefined
  const lost = (reason: string) => {
    if (isLost || isClosing()) return
    isLost = true
    logger.error({}, `there is no connection to Redis (${reason}); deliveries are answered 503 until it is back`)
  }
  client.on('error', (error) => {
    const reason = redactReason(error)
    // A breaking connection emits its error before it closes.
    if (client.status !== 'ready') lost(reason)
  })
  client.on('close', () => {
    // The connection may be back at once. Every failed connect also emits `close`.
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

/** How long a closed connection may stay down before it counts as an outage, unless a connect fails first (ms). */
const outageMs = 1_000

/** Says why a connection failed. If a host has several addresses, the error has a code but no message. */
function redactReason(error: Error & { readonly code?: unknown }): string {
  withoutCommand(error)
  return error.message || String(error.code ?? error.name)
}
