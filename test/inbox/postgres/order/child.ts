import { openSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'pg'
import { postgresInbox } from '../../../../src/inbox/postgres.ts'
import { createReceiver, unverified } from '../../../../src/index.ts'
import { deliver, samplePayload } from '../../../../src/testing/index.ts'
import { seeded } from '../../../support/seeded.ts'
import { silent } from '../../../support/silent.ts'
import type { FromOrdered, OrderTask, ToOrdered } from './task.ts'

// Accepts what it is sent, and notes when a handler begins, and when it fails.
const { url, schema, order, notes, leaseMs, seed } = JSON.parse(process.argv[2] as string) as OrderTask

// All processes append to this file, so its lines are in the order in which the handlers began.
const file = openSync(notes, 'a')
const random = seeded(seed)
const pool = new Pool({ connectionString: url })
pool.on('error', () => {})
const receiver = createReceiver({
  verify: unverified(),
  inbox: postgresInbox({ pool, schema, leaseMs }),
  order,
  eventKey: ({ mediaId, title }) => `${mediaId} ${title}`,
  retry: { attempts: 50, baseMs: 10, maxMs: 200 },
  logger: silent,
})
receiver.onAny(async ({ mediaId, title }) => {
  writeSync(file, `${mediaId} ${title}\n`)
  await sleep(random() * 10)
  if (random() > 0.1) return
  writeSync(file, `${mediaId} ${title} failed\n`)
  throw new Error('unlucky')
})

process.on('message', async ({ id, mediaId, n }: ToOrdered) => {
  const payload = samplePayload('encoding.finished', { media_id: mediaId, title: `${n}` })
  const { status } = await deliver(receiver, payload)
  process.send?.({ id, status } satisfies FromOrdered)
})
// Killed or not, it ends with the process that started it.
process.on('disconnect', () => process.exit(1))
