import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Logger, MemoryInboxOptions, ReceiverOptions } from '../src/index.ts'
import { secret } from './deliveries.ts'
import { handle, handlerMs } from './tally.ts'

// The package is imported at run time, so that the benchmark measures a built one, as a user has it.
const built = process.env['BENCH_PACKAGE'] ?? ''
const load = (module: string) => import(pathToFileURL(join(built, 'dist', `${module}.js`)).href)

const core: typeof import('../src/index.ts') = await load('src/index')
export const { lruStore, memoryInbox } = core
export const { sqliteInbox }: typeof import('../src/inbox/sqlite.ts') = await load('src/inbox/sqlite')
export const { nodeHandler }: typeof import('../adapters/node.ts') = await load('adapters/node')
export const { expressHandler }: typeof import('../adapters/express.ts') = await load('adapters/express')
export const { honoHandler }: typeof import('../adapters/hono.ts') = await load('adapters/hono')

/** As many events at a time as the receiver written by hand handles: all of them. */
const unlimited: MemoryInboxOptions = { concurrency: 2_000_000, maxWaiting: 2_000_000 }

/** The default logger without its writing: the console would cost more than all the rest. */
const logger: Logger = { level: 'warn', debug() {}, info() {}, warn() {}, error: console.error }

type Options = Partial<Pick<ReceiverOptions, 'inbox' | 'logger' | 'handlerTimeoutMs'>>

/** Makes the receiver of every measurement: HMAC-SHA256, one handler, and the default inbox unless handlers are slow. */
export function receiver(options: Options = {}) {
  const verify = core.hmacSignature({ secret, header: 'x-signature' })
  const inbox = handlerMs > 0 ? { inbox: memoryInbox(unlimited) } : {}
  const receiver = core.createReceiver({ verify, logger, ...inbox, ...options })
  receiver.on('encoding.finished', (event) => handle(event.mediaId))
  return receiver
}

/** Makes the same receiver with a SQLite inbox. */
export const durableReceiver = () => receiver({ inbox: sqliteInbox({ path: temporaryFile() }) })

/** Makes the same receiver with a Postgres inbox, whose tables are new. */
export async function postgresReceiver() {
  const { postgresInbox }: typeof import('../src/inbox/postgres.ts') = await load('src/inbox/postgres')
  const connection = process.env['BENCH_POSTGRES'] ?? ''
  const durable = receiver({ inbox: postgresInbox({ connection, schema: `bench_${process.pid}` }) })
  await durable.ready()
  return durable
}

/** Makes a temporary folder, which is removed when the process exits, and gives the path of a file in it. */
export function temporaryFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sqlite-inbox-'))
  process.once('exit', () => rmSync(folder, { recursive: true }))
  return join(folder, 'inbox.db')
}
