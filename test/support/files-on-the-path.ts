import { once } from 'node:events'
import { createServer } from 'node:http'
import { Session } from 'node:inspector/promises'
import type { AddressInfo } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import express from 'express'
import { Pool } from 'pg'
import { expressHandler } from '../../adapters/express.ts'
import { postgresInbox } from '../../src/inbox/postgres.ts'
import { sqliteInbox } from '../../src/inbox/sqlite.ts'
import { createReceiver, memoryInbox, urlToken } from '../../src/index.ts'
import { makeDelivery, samplePayload, signWithUrlToken } from '../../src/testing/index.ts'

// Prints, as JSON, the source files in which a function ran between a request to Express and the user's handler, with the
// memory inbox, or with the one in Postgres or SQLite if a URL or a path is given. It runs in a process of its own, without
// the transforms of a test runner.

const root = new URL('../..', import.meta.url)
const token = { secret: 's3cret' }

const session = new Session()
session.connect()
await session.post('Profiler.enable')
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })

/** Lists the source files in which a function ran since the last call. */
async function takeFiles(): Promise<string[]> {
  const { result } = await session.post('Profiler.takePreciseCoverage')
  return result
    .filter(({ functions }) => functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0))
    .filter(({ url }) => url.startsWith(root.href))
    .map(({ url }) => fileURLToPath(url).slice(fileURLToPath(root).length))
    .filter((file) => /^(src|adapters)\//.test(file))
    .sort()
}

const [place] = process.argv.slice(2)
const receiver = createReceiver({ verify: urlToken(token), inbox: inboxAt(place) })

function inboxAt(place: string | undefined) {
  if (place === undefined) return memoryInbox()
  if (!place.startsWith('postgres:')) return sqliteInbox({ path: place })
  return postgresInbox({ pool: new Pool({ connectionString: place }) })
}

let handled: (files: string[]) => void
receiver.on('encoding.finished', async () => handled(await takeFiles()))

await receiver.ready()
const server = createServer(express().post('/webhooks/media', expressHandler(receiver))).listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo

async function filesOfDelivery(): Promise<string[]> {
  const payload = samplePayload('encoding.finished', { media_id: crypto.randomUUID() })
  const url = `http://127.0.0.1:${port}/webhooks/media`
  const delivery = await makeDelivery(payload, { url, sign: signWithUrlToken(token) })
  const files = new Promise<string[]>((resolve) => {
    handled = resolve
  })
  // Lets the previous delivery finish what it does after its handler.
  await nextTurn()
  await takeFiles()
  await fetch(delivery.url, {
    method: 'POST',
    headers: delivery.headers as Headers,
    body: delivery.body as Uint8Array<ArrayBuffer>,
  })
  return files
}

// The first delivery also runs code that runs only once.
await filesOfDelivery()
// A timer may fire during one of them.
const [first = [], ...others] = [await filesOfDelivery(), await filesOfDelivery(), await filesOfDelivery()]
console.log(JSON.stringify(first.filter((file) => others.every((files) => files.includes(file)))))
process.exit()
