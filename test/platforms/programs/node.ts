import { createServer } from 'node:http'
import { join } from 'node:path'
import { closeServer, nodeHandler } from '../../../adapters/node.ts'
import { sqliteInbox } from '../../../src/inbox/sqlite.ts'
import { createReceiver, memoryInbox, unverified } from '../../../src/index.ts'
import { recordHandled } from './record-handled.ts'

const { PORT = '', FOLDER = '', INBOX } = process.env
const receiver = createReceiver({
  verify: unverified(),
  inbox: INBOX === 'sqlite' ? sqliteInbox({ path: join(FOLDER, 'inbox.db') }) : memoryInbox(),
  retry: { baseMs: 50 },
}).onAny(recordHandled)

const server = createServer(nodeHandler(receiver)).listen(Number(PORT), '127.0.0.1', () => {
  console.log(`listening on ${PORT}`)
})
process.once('SIGTERM', async () => {
  await closeServer(server, receiver)
  process.exit()
})
