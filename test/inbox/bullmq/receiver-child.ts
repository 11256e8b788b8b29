import { once } from 'node:events'
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { nodeHandler } from '../../../adapters/node.ts'
import { bullmqInbox } from '../../../src/inbox/bullmq.ts'
import { createReceiver } from '../../../src/index.ts'
import { verify } from '../../conformance/sending.ts'
import { seeded } from '../../support/seeded.ts'
import { silent } from '../../support/silent.ts'
import { testSeed } from '../../support/test-seed.ts'
import type { FromReceiver, ReceiverTask, ToReceiver } from './receiver-process.ts'

const { redis, queue, handling, leaseMs } = JSON.parse(process.argv[2] as string) as ReceiverTask
const tell = (message: FromReceiver) => process.send?.(message)
// Killed or not, it ends with the process that started it.
process.on('disconnect', () => process.exit(1))

const inbox = bullmqInbox({ connection: redis, queue, leaseMs, handles: handling !== 'none' })
const receiver = createReceiver({
  verify,
  inbox,
  eventKey: ({ mediaId }) => mediaId,
  retry: { attempts: 5, baseMs: 20 },
  logger: silent,
})
const changes = new Redis(redis)
const random = seeded(testSeed())

if (handling === 'held') {
  receiver.onAny(({ key }) => void tell({ did: 'first', key }), { name: 'first' })
  const hold = async ({ key }: { key: string }, { signal }: { signal: AbortSignal }) => {
    signal.addEventListener('abort', () => tell({ did: 'abort', key, reason: signal.reason.code }))
    tell({ did: 'second', key })
    for (;;) {
      const [message] = (await once(process, 'message')) as [ToReceiver]
      if (message.finish === key) return
    }
  }
  receiver.onAny(hold, { name: 'second' })
} else {
  receiver.onAny(async (_event, { key }) => {
    await sleep(handling !== 'crashing' ? random() * 20 : key.startsWith('culprit') ? 300 : 1_000)
    if (key.startsWith('culprit')) process.kill(process.pid, 'SIGKILL')
    await changes.hincrby('changes', key, 1)
  })
}

const server = createServer(nodeHandler(receiver)).listen(0, '127.0.0.1')
await once(server, 'listening')
tell({ did: 'listen', port: (server.address() as { port: number }).port })
