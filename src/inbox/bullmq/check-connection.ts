import type { Cluster, Redis, RedisOptions } from 'ioredis'
import { WebhookError } from '../../errors.ts'

/** What leads to Redis: a URL, options of ioredis, or a client of ioredis, which is duplicated and never closed. */
export type RedisConnection = string | URL | RedisOptions | Redis | Cluster

/** Returns true for a client of any copy of ioredis. */
export const isClient = (connection: object): connection is Redis | Cluster =>
  hasMethod(connection, 'defineCommand') && hasMethod(connection, 'duplicate')

/**
 * Checks that a connection says where Redis is: ioredis takes localhost for nearly everything else.
 * @throws WebhookError `invalid_option`
 */
export function checkConnection(by: string, connection: unknown): void {
  const problem = problemOf(connection)
  if (problem !== undefined) throw new WebhookError('invalid_option', `${by}: connection ${problem}`)
}

const hasMethod = (value: object, method: string): boolean =>
  typeof (value as Record<string, unknown>)[method] === 'function'

const expected = 'has to be a redis:// or rediss:// URL, options or a client of ioredis'

function problemOf(connection: unknown): string | undefined {
  if (typeof connection === 'string') return problemOfText(connection)
  if (typeof connection !== 'object' || connection === null) return `${expected} (is an environment variable unset?)`
  if (Array.isArray(connection)) return 'is a list: give new Cluster([…]) of ioredis, or { sentinels: […], name }'
  if (isUrl(connection)) return problemOfText(connection.href)
  if (isClient(connection)) return problemOfPrefix((connection as Redis).options)
  if (hasMethod(connection, 'query'))
    return 'is a client of a SQL database: give the URL of Redis, or use postgresInbox'
  if (hasMethod(connection, 'sendCommand')) return `${expected}: node-redis has other clients, so give its URL instead`
  return problemOfOptions(connection as Record<string, unknown>)
}

const isUrl = (value: object): value is URL => Object.prototype.toString.call(value) === '[object URL]'

function problemOfText(text: string): string | undefined {
  // The path of a Unix socket.
  if (/^\/[^/]/.test(text)) return undefined
  if (text.trim() === '') return `${expected} (is an environment variable unset?)`
  // The text is not quoted, since it may have a password.
  if (!/^rediss?:\/\//i.test(text)) return `${expected}: a URL begins with redis:// or rediss://`
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url?.hostname) return `${expected}: the URL has no host`
  if (!/^\/?\d*$/.test(url.pathname)) return 'has a URL whose path is no database: it ends in a number, such as /0'
  return undefined
}

/** Names that other clients use. ioredis would ignore them. */
const fixes: Readonly<Record<string, string>> = {
  url: 'give the URL itself',
  uri: 'give the URL itself',
  connectionString: 'give the URL itself',
  href: 'give the URL itself',
  hostname: 'call it host',
  socket: 'give host and port themselves',
  nodes: 'give new Cluster([…]) of ioredis',
  rootNodes: 'give new Cluster([…]) of ioredis',
  database: 'call it db',
  user: 'call it username',
}

const addressOptions = ['host', 'port', 'path', 'sentinels'] as const

function problemOfOptions(options: Record<string, unknown>): string | undefined {
  for (const [name, fix] of Object.entries(fixes))
    if (name in options) return `has the option ${name}, which ioredis does not know: ${fix}`
  const given = addressOptions.filter((name) => name in options)
  if (given.length === 0) return `${expected}: options name a host, a port, a path or sentinels`
  for (const name of given)
    if (!isAddress(name, options[name])) return `has no valid ${name} (is an environment variable unset?)`
  const { db = 0 } = options
  if (!/^\d+$/.test(String(db))) return 'has a db that is not a number from 0 on'
  return problemOfPrefix(options)
}

function isAddress(name: (typeof addressOptions)[number], value: unknown): boolean {
  if (name === 'sentinels') return Array.isArray(value) && value.length > 0
  if (name !== 'port') return typeof value === 'string' && value.trim() !== ''
  return /^\d+$/.test(String(value)) && Number(value) > 0 && Number(value) < 65_536
}

const problemOfPrefix = ({ keyPrefix }: RedisOptions): string | undefined =>
  keyPrefix
    ? "has a keyPrefix, which BullMQ cannot work with: leave it out, and keep keys apart with the inbox's option queue"
    : undefined
