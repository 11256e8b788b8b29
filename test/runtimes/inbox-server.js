import { appendFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { createReceiver, memoryInbox, unverified } from 'media-webhooks'
import { closeOnSignals, nodeHandler } from 'media-webhooks/node'

const { PORT, FOLDER, HANDLED, INBOX, STORAGE } = process.env

// Each is imported only when it is used, since it needs packages of its own.
const inboxes = {
  memory: () => memoryInbox(),
  async sqlite() {
    const { sqliteInbox } = await import('media-webhooks/inbox/sqlite')
    return sqliteInbox({ path: join(FOLDER, 'inbox.db') })
  },
  async postgres() {
    const { postgresInbox } = await import('media-webhooks/inbox/postgres')
    const { default: pg } = await import('pg')
    return postgresInbox({ pool: new pg.Pool({ connectionString: STORAGE }).on('error', () => {}) })
  },
  async bullmq() {
    const { bullmqInbox } = await import('media-webhooks/inbox/bullmq')
    return bullmqInbox({ connection: { port: Number(STORAGE) } })
  },
}

const receiver = createReceiver({ verify: unverified(), inbox: await inboxes[INBOX](), retry: { baseMs: 50 } })
receiver.onAny(async ({ type, mediaId, qualities, title }, { attempt }) => {
  await new Promise((resolve) => setTimeout(resolve, 20))
  if (title === 'fails once' && attempt === 1) throw new Error('as asked')
  appendFileSync(HANDLED, `${type} ${mediaId} ${qualities}\n`)
})
await receiver.ready()

const server = createServer(nodeHandler(receiver)).listen(Number(PORT), '127.0.0.1', () => {
  console.log(`listening on ${PORT}`)
})
closeOnSignals(server, receiver)
