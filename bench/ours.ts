import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { InboxDefinition } from '../src/inbox/inbox.ts'
import { secret } from './deliveries.ts'
import { handle } from './tally.ts'

// Imported by name at run time, so that the benchmark measures the built package, as a user has it.
const load = (specifier: string) => import(specifier)

const { createReceiver, hmacSignature }: typeof import('../src/index.ts') = await load('media-webhooks')
export const { sqliteInbox }: typeof import('../src/inbox/sqlite.ts') = await load('media-webhooks/inbox/sqlite')
const { postgresInbox }: typeof import('../src/inbox/postgres.ts') = await load('media-webhooks/inbox/postgres')
export const { nodeHandler }: typeof import('../adapters/node.ts') = await load('media-webhooks/node')
export const { expressHandler }: typeof import('../adapters/express.ts') = await load('media-webhooks/express')
export const { honoHandler }: typeof import('../adapters/hono.ts') = await load('media-webhooks/hono')

/** Makes the receiver of every measurement: HMAC-SHA256, the default inbox and store, one handler. */
export function receiver() {
  return receiverWith((event) => handle(event.mediaId))
}

/** Makes the same receiver with a SQLite inbox. */
export function durableReceiver() {
  return receiverWith((event) => handle(event.mediaId), sqliteInbox({ path: temporaryFile() }))
}

/** Makes the same receiver with a Postgres inbox, whose tables are new. */
export async function postgresReceiver() {
  const inbox = postgresInbox({ connection: process.env['BENCH_POSTGRES'] ?? '', schema: `bench_${process.pid}` })
  const receiver = receiverWith((event) => handle(event.mediaId), inbox)
  await receiver.ready()
  return receiver
}

/** Makes a temporary folder, which is removed when the process exits, and gives the path of a file in it. */
export function temporaryFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sqlite-inbox-'))
  process.once('exit', () => rmSync(folder, { recursive: true }))
  return join(folder, 'inbox.db')
}

export function receiverWith(handler: (event: { readonly mediaId: string }) => Promise<void>, inbox?: InboxDefinition) {
  const verify = hmacSignature({ secret, header: 'x-signature' })
  const receiver = createReceiver({ verify, ...(inbox && { inbox }) })
  receiver.on('encoding.finished', handler)
  return receiver
}
