import { setTimeout as sleep } from 'node:timers/promises'
import { type ClientBase, Pool } from 'pg'
import { postgresInbox } from '../../../../src/inbox/postgres.ts'
import { createReceiver, unverified, WebhookError } from '../../../../src/index.ts'
import { deliver, samplePayload } from '../../../../src/testing/index.ts'
import { seeded } from '../../../support/seeded.ts'
import { silent } from '../../../support/silent.ts'
import { openEvidence, readAcknowledged } from './evidence.ts'
import { type FromKilled, type KillTask, keyOf, numberOf, type ToKilled } from './task.ts'

// Accepts at full speed and handles, until it is killed.
const task = JSON.parse(process.argv[2] as string) as KillTask
const { url, name, predecessor, folder, leaseMs, seed, transaction } = task
const random = seeded(seed)
const callers = 8
/** More events than this wait for no handler, so that the run ends soon after the last kill. */
const backlog = 500

const evidence = openEvidence(folder, name)
const pool = new Pool({ connectionString: url })
// Postgres is killed as well.
pool.on('error', () => {})
const receiver = createReceiver({
  verify: unverified(),
  inbox: postgresInbox({ pool, leaseMs }),
  eventKey: ({ title }) => title as string,
  retry: { attempts: 50, baseMs: 10, maxMs: 200 },
  logger: silent,
})

const unlucky = (share: number) => {
  if (random() < share) throw new Error('unlucky')
}

/** Writes the row of a run. A kill, a pause or an error may come between it and the commit. */
async function insert(client: Pool | ClientBase, handler: string, key: string) {
  await client.query('INSERT INTO handled (handler, key, process) VALUES ($1, $2, $3)', [handler, key, name])
  await sleep(random() * 4)
}

async function insertInTransaction(client: ClientBase, handler: string, key: string) {
  evidence.add('inTransaction', 1)
  try {
    await insert(client, handler, key)
    unlucky(0.03)
  } finally {
    evidence.add('inTransaction', -1)
  }
}

for (const handler of ['first', 'second']) {
  receiver.onAny(
    async (_event, context) => {
      evidence.add('running', 1)
      try {
        await sleep(random() * 4)
        unlucky(0.03)
        if (transaction) await context.transaction((client) => insertInTransaction(client, handler, context.key))
        else await insert(pool, handler, context.key)
      } catch (error) {
        if (error instanceof WebhookError && error.code === 'lease_lost') evidence.add('leasesLost', 1)
        throw error
      } finally {
        evidence.add('running', -1)
      }
    },
    { name: handler },
  )
}

/** The keys to deliver again. The predecessor acknowledged half of them; the answers to the others were lost with it. */
const again: string[] = []
if (predecessor !== undefined) {
  const numbers = readAcknowledged(folder, predecessor).map((key) => numberOf(key, predecessor))
  const last = numbers.reduce((highest: number, n = 0) => Math.max(highest, n), 0)
  for (let n = last - 20; n < last + 20; n++) if (n >= 0) again.push(keyOf(predecessor, n))
}
let created = 0
let hasStarted = false
let isFull = false
let isDraining = false

/** Returns one of 2,000 media, the same for each delivery of an event. */
const mediaOf = (key: string) => `media ${[...key].reduce((sum, char) => (sum * 31 + char.charCodeAt(0)) % 2_000, 0)}`

/** Makes a delivery. Resolves with `true` if it was acknowledged. */
async function call(key: string): Promise<boolean> {
  const payload = samplePayload('encoding.finished', { media_id: mediaOf(key), title: key })
  const { status, outcome } = await deliver(receiver, payload)
  if (status !== 200) return false
  evidence.acknowledge(key)
  if (!hasStarted) process.send?.('started' satisfies FromKilled)
  hasStarted = true
  if (outcome === 'duplicate') evidence.add('duplicates', 1)
  return true
}

async function caller() {
  while (!isDraining) {
    if (isFull) await sleep(10)
    else {
      const key = again.pop() ?? keyOf(name, created++)
      const calls = [call(key)]
      // Sometimes two deliveries of an event arrive at the same time.
      if (random() < 0.05) calls.push(call(key))
      if (!(await Promise.all(calls)).every(Boolean)) {
        again.push(key)
        await sleep(5)
      }
    }
  }
}

async function watchBacklog() {
  while (!isDraining) {
    const stats = await Promise.resolve(receiver.inbox.stats()).catch(() => undefined)
    isFull = (stats?.waiting ?? 0) > backlog
    await sleep(50)
  }
}

process.on('message', (message: ToKilled) => {
  isDraining = message === 'drain'
})
// Killed or not, it ends with the process that started it.
process.on('disconnect', () => process.exit(1))
for (let i = 0; i < callers; i++) void caller()
void watchBacklog()
