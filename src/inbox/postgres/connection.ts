import type pg from 'pg'
import { WebhookError } from '../../errors.ts'
import { guardPool } from './pool.ts'

/** A database URL, pool options, or a pool. */
export type PostgresConnection = string | URL | pg.PoolConfig | pg.Pool

/** How to reach the database: the application's pool, or options for pools to make. */
export interface Route {
  readonly given: pg.Pool | undefined
  readonly config: pg.PoolConfig
}

/** Known pool options. pg ignores others, even a misspelt `host`, and connects to localhost. */
const knownOptions = [
  ...['connectionString', 'host', 'port', 'user', 'database', 'password', 'stream', 'options', 'application_name'],
  ...['fallback_application_name', 'client_encoding', 'types', 'binary', 'replication', 'keepAlive', 'pipeline'],
  ...['keepAliveInitialDelayMillis', 'connectionTimeoutMillis', 'query_timeout', 'statement_timeout', 'lock_timeout'],
  ...['idle_in_transaction_session_timeout', 'ssl', 'sslmode', 'sslcert', 'sslkey', 'sslrootcert', 'sslnegotiation'],
  ...['uselibpqcompat', 'channel_binding', 'enableChannelBinding', 'scramMaxIterations', 'max', 'min', 'poolSize'],
  ...['idleTimeoutMillis', 'maxUses', 'maxLifetimeSeconds', 'allowExitOnIdle', 'log', 'Client', 'Promise', 'verify'],
  ...['onConnect'],
]

/**
 * Checks `pool` and `connection`. One that names no server is rejected: pg would connect to localhost.
 * @throws WebhookError `invalid_option`
 */
export function checkRoute(owner: string, { pool, connection }: { pool?: unknown; connection?: unknown }): Route {
  if ((pool === undefined) === (connection === undefined)) throw invalid(owner, 'give either a pool or a connection')
  if (pool !== undefined && !isPool(pool)) throw invalid(owner, 'pool must be a Pool of the pg package')
  const given = pool ?? connection
  if (isPool(given)) return { given: guardPool(given), config: copyConfig(given.options) }
  if (typeof given === 'string' || isUrl(given)) {
    const connectionString = `${given}`
    checkUrl(owner, 'connection', connectionString)
    return { given: undefined, config: { connectionString } }
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw invalid(owner, 'connection must be a URL (postgres://…), a Pool of the pg package, or the options of one')
  checkConfig(owner, given)
  return { given: undefined, config: copyConfig(given) }
}

const isPool = (value: unknown): value is pg.Pool => {
  const { connect, query, options } = Object(value)
  return typeof connect === 'function' && typeof query === 'function' && typeof options === 'object' && options !== null
}

const isUrl = (value: unknown): value is URL => {
  const { href, protocol } = Object(value)
  return typeof href === 'string' && typeof protocol === 'string'
}

function checkConfig(owner: string, config: pg.PoolConfig): void {
  for (const name in config) {
    if (knownOptions.includes(name)) continue
    throw invalid(
      owner,
      `connection has no option ${name}: give a URL, or pg's own options, such as connectionString or host`,
    )
  }
  const isEmpty = (value: unknown) => typeof value !== 'string' || value === ''
  if ('connectionString' in config) {
    if (isEmpty(config.connectionString)) throw invalid(owner, missing('connectionString'))
    checkUrl(owner, 'connectionString', config.connectionString as string)
  } else if ('host' in config) {
    if (isEmpty(config.host)) throw invalid(owner, missing('host'))
  } else if (config.stream === undefined && !process.env['PGHOST']) {
    throw invalid(
      owner,
      "connection names no server: give connectionString or host (host: 'localhost' for this machine)",
    )
  }
}

const missing = (name: string): string =>
  `connection.${name} must be a non-empty string (is an environment variable unset?)`

/** Start of a URL, up to its path. A URL may hold a password, so messages never quote it. */
const authority = /^(?:postgres|postgresql):\/\/(?:[^/?#]*@)?([^/?#]*)/i

function checkUrl(owner: string, name: string, url: string): void {
  if (url === '') throw invalid(owner, `${name} is empty (is an environment variable unset?)`)
  // Path of a Unix socket.
  if (url.startsWith('/') || /^socket:./i.test(url)) return
  const [isPostgres, host = ''] = authority.exec(url) ?? []
  if (isPostgres === undefined)
    throw invalid(owner, `${name} must be a URL that begins with postgres:// or postgresql://`)
  const hasHost = host.replace(/:\d*$/, '') !== '' || /[?&]host=[^&]/.test(url)
  if (!hasHost && !process.env['PGHOST'])
    throw invalid(owner, `the URL in ${name} names no host: give one, as in postgres://app@localhost/app`)
}

/** Copies pool options. pg hides the password from copies. */
const copyConfig = (options: pg.PoolConfig): pg.PoolConfig =>
  options.password === undefined ? { ...options } : { ...options, password: options.password }

const invalid = (owner: string, problem: string): WebhookError =>
  new WebhookError('invalid_option', `${owner}: ${problem}`)
