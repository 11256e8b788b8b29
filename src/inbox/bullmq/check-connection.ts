import type { Cluster, Redis, RedisOptions } from 'ioredis'
import { WebhookError } from '../../errors.ts'

/** A Redis URL, ioredis options, or an ioredis client, which is duplicated and never closed. */
export type RedisConnection = string | URL | RedisOptions | Redis | Cluster

/** Recognizes clients of any copy of ioredis. */
export const isClient = (connection: object): connection is Redis | Cluster =>
  hasMethod(connection, 'defineCommand') && hasMethod(connection, 'duplicate')

/**
 * Checks that a connection says where Redis is: ioredis falls back to localhost for nearly anything else.
 * @throws WebhookError `invalid_option`
 */
export function checkConnection(by: string, connection: unknown): void {
  const problem = findProblem(connection)
  if (problem !== undefined) throw new WebhookError('invalid_option', `${by}: connection ${problem}`)
}

const hasMethod = (value: object, method: string): boolean =>
  typeof (value as Record<string, unknown>)[method] === 'function'

const expected = 'must be a redis:// or rediss:// URL, ioredis options or an ioredis client'

function findProblem(connection: unknown): string | undefined {
  if (typeof connection === 'string') return problemOfText(connection)
  if (typeof connection !== 'object' || connection === null) return `${expected} (is an environment variable unset?)`
  if (Array.isArray(connection)) return 'is an array: pass new Cluster([…]) of ioredis, or { sentinels: […], name }'
  if (isUrl(connection)) return problemOfText(connection.href)
  if (isClient(connection)) return problemOfPrefix((connection as Redis).options)
  if (hasMethod(connection, 'query')) return 'is a client of a SQL database: pass a Redis URL, or use postgresInbox'
  if (hasMethod(connection, 'sendCommand')) return `${expected}: this is a node-redis client, so pass the URL instead`
  return problemOfOptions(connection as Record<string, unknown>)
}

const isUrl = (value: object): value is URL => Object.prototype.toString.call(value) === '[object URL]'

function problemOfText(text: string): string | undefined {
  // A Unix socket.
  if (/^\/[^/]/.test(text)) return undefined
  if (text.trim() === '') return `${expected} (is an environment variable unset?)`
  // Don't quote the text: it may have a password.
  if (!/^rediss?:\/\//i.test(text)) return `${expected}: the URL must start with redis:// or rediss://`
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url?.hostname) return `${expected}: the URL has no host`
  if (!/^\/?\d*$/.test(url.pathname)) return 'has a URL with an invalid path: it must be a database number, such as /0'
  return undefined
}

/** Option names of other clients, which ioredis would silently ignore. */
const fixes: Readonly<Record<string, string>> = {
  url: 'pass the URL itself',
  uri: 'pass the URL itself',
  connectionString: 'pass the URL itself',
  href: 'pass the URL itself',
  hostname: 'call it host',
  socket: 'pass host and port themselves',
  nodes: 'pass new Cluster([…]) of ioredis',
  rootNodes: 'pass new Cluster([…]) of ioredis',
  database: 'call it db',
  user: 'call it username',
}

const addressOptions = ['host', 'port', 'path', 'sentinels'] as const

function problemOfOptions(options: Record<string, unknown>): string | undefined {
  for (const [name, fix] of Object.entries(fixes))
    if (name in options) return `has the option ${name}, which ioredis ignores: ${fix}`
  const given = addressOptions.filter((name) => name in options)
  if (given.length === 0) return `${expected}: options must have host, port, path or sentinels`
  for (const name of given)
    if (!isAddress(name, options[name])) return `has an invalid ${name} (is an environment variable unset?)`
  const { db = 0 } = options
  if (!/^\d+$/.test(String(db))) return 'has an invalid db: it must be a number, 0 or greater'
  return problemOfPrefix(options)
}

function isAddress(name: (typeof addressOptions)[number], value: unknown): boolean {
  if (name === 'sentinels') return Array.isArray(value) && value.length > 0
  if (name !== 'port') return typeof value === 'string' && value.trim() !== ''
  return /^\d+$/.test(String(value)) && Number(value) > 0 && Number(value) < 65_536
}

const problemOfPrefix = ({ keyPrefix }: RedisOptions): string | undefined =>
  keyPrefix
    ? "has a keyPrefix, which BullMQ does not support: leave it out, and separate keys with the inbox's option queue"
    : undefined
