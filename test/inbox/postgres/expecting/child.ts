import { Pool } from 'pg'
import { postgresInbox } from '../../../../src/inbox/postgres.ts'
import { createReceiver, unverified } from '../../../../src/index.ts'
import { deliver, samplePayload } from '../../../../src/testing/index.ts'
import { silent } from '../../../support/silent.ts'
import type { ExpectingTask, FromExpecting, ToExpecting } from './task.ts'

// Accepts the events that it is told, and reports what is overdue, until it is killed.
const { url, withinMs } = JSON.parse(process.argv[2] as string) as ExpectingTask
const tell = (message: FromExpecting) => process.send?.(message)

const receiver = createReceiver({
  verify: unverified(),
  inbox: postgresInbox({ pool: new Pool({ connectionString: url }), leaseMs: 1_000 }),
  eventKey: ({ type, mediaId }) => `${type} ${mediaId}`,
  retry: { attempts: 50, baseMs: 10, maxMs: 200 },
  logger: silent,
})
receiver.expect(
  'file.received',
  { then: 'encoding.finished', within: withinMs, name: 'encoded' },
  ({ mediaId }, { transaction }) =>
    transaction((client) => client.query('INSERT INTO reported (media) VALUES ($1)', [mediaId])),
)

process.on('message', async (event: ToExpecting) => {
  const payload = samplePayload(event.type, { media_id: event.mediaId, emitted_at: '2026-03-01T12:00:00Z' })
  const { status } = await deliver(receiver, payload)
  if (status === 200) tell(event)
})
// Killed or not, it ends with the process that started it.
process.on('disconnect', () => process.exit(1))
receiver.ready().then(
  () => tell('ready'),
  () => process.exit(1),
)
