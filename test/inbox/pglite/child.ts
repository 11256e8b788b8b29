// Acknowledges events in the folder of a PGlite, and kills itself while their handlers run.
import { PGlite } from '@electric-sql/pglite'
import { pgliteInbox } from '../../../src/inbox/pglite.ts'
import { createReceiver, unverified } from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { silent } from '../../support/silent.ts'

const [folder, count] = process.argv.slice(2) as [string, string]
const db = await PGlite.create(folder)
const receiver = createReceiver({
  verify: unverified(),
  logger: silent,
  inbox: pgliteInbox({ db, leaseMs: 2_000, timeoutMs: 60_000 }),
})
receiver.onAny(() => new Promise(() => {}), { name: 'write' })
await receiver.ready()
for (let i = 0; i < Number(count); i++) {
  const { status } = await deliver(receiver, samplePayload('encoding.finished', { media_id: `m${i}` }))
  if (status !== 200) throw new Error(`delivery ${i} was answered ${status}`)
}
process.kill(process.pid, 'SIGKILL')
