import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { nodeHandler } from '../../../../adapters/node.ts'
import { sqliteInbox } from '../../../../src/inbox/sqlite.ts'
import { createReceiver } from '../../../../src/index.ts'
import { verify } from '../../../conformance/sending.ts'
import { silent } from '../../../conformance/subject.ts'
import type { FromChild } from './child.ts'
import { openWritten } from './written.ts'

// A process that will be killed. Its handler writes a row for each event to the file of the inbox.

const [, , path = '', mode] = process.argv
const { database, insert } = openWritten(path)
const receiver = createReceiver({
  verify,
  inbox: sqliteInbox({ database, maxWaiting: 1_000_000 }),
  retry: { attempts: 10, baseMs: 10 },
  logger: silent,
})

receiver.onAny(
  async ({ mediaId }, { transaction }) => {
    await pause(Math.random() * 3)
    if (Math.random() < 0.05) throw new Error('unlucky')
    if (mode === 'transaction') await transaction(() => insert(mediaId))
    else insert(mediaId)
    await pause(Math.random() * 3)
  },
  { name: 'writes' },
)
receiver.onAny(
  async () => {
    await pause(Math.random() * 3)
    if (Math.random() < 0.05) throw new Error('unlucky')
  },
  { name: 'other' },
)

const tell = (message: FromChild) => process.send?.(message)
const server = createServer(nodeHandler(receiver))
server.listen(0, '127.0.0.1', () => tell({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` }))

// The parent asks how many events are left.
process.on('message', async () => {
  const { waiting, running, retrying } = await receiver.inbox.stats()
  tell({ unfinished: waiting + running + retrying })
})
// Killed or not, it ends with the process that started it.
process.on('disconnect', () => process.exit(1))
