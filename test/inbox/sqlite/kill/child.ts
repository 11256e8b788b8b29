import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { nodeHandler } from '../../../../adapters/node.ts'
import { sqliteInbox } from '../../../../src/inbox/sqlite.ts'
import { createReceiver, type HandlerContext, type MediaEvent } from '../../../../src/index.ts'
import { verify } from '../../../conformance/sending.ts'
import { silent } from '../../../conformance/subject.ts'
import { openEffects } from './effects.ts'

/** A message of the process that will be killed. */
export type FromChild = { readonly url: string } | { readonly unfinished: number }

const [, , path = '', effectsPath = ''] = process.argv
const effects = openEffects(effectsPath)
const receiver = createReceiver({
  verify,
  inbox: sqliteInbox({ path, maxWaiting: 1_000_000 }),
  retry: { attempts: 10, baseMs: 10 },
  logger: silent,
})

const record = ({ mediaId }: MediaEvent, { key }: HandlerContext, handler: string) =>
  effects.record({ key, mediaId, handler, pid: process.pid })

receiver.onAny((event, context) => record(event, context, 'first'), { name: 'first' })
receiver.onAny(
  async (event, context) => {
    await pause(Math.random() * 3)
    if (Math.random() < 0.05) throw new Error('unlucky')
    record(event, context, 'second')
  },
  { name: 'second' },
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
