import { setTimeout as sleep } from 'node:timers/promises'
import { postgresInbox } from '../../../../src/inbox/postgres.ts'
import { createReceiver, type Receiver, unverified } from '../../../../src/index.ts'
import { deliver, samplePayload } from '../../../../src/testing/index.ts'
import type { PostgresServer } from '../../../support/postgres/postgres-server.ts'
import { silent } from '../../../support/silent.ts'
import { processesOf, readAcknowledged, readCounters } from './evidence.ts'
import type { Fleet } from './fleet.ts'

/** Maximum time without progress, in ms, after which the rest of the events counts as stuck. */
const stuckMs = 30_000

/** Waits until everything has been handled, and compares the rows with the acknowledged events. */
export async function settle(server: PostgresServer, fleet: Fleet, folder: string) {
  await fleet.drain()
  const receiver = createReceiver({
    verify: unverified(),
    inbox: postgresInbox({ connection: server.url, handles: false }),
    eventKey: ({ title }) => title as string,
    logger: silent,
  })
  // With a handler, no type is ignored.
  receiver.onAny(() => {})
  try {
    const stuck = await drained(receiver, fleet)
    const processes = processesOf(folder)
    const acknowledged = new Set(processes.flatMap((name) => readAcknowledged(folder, name)))
    const counters = processes.map((name) => readCounters(folder, name))
    const acceptedTwice = await acceptAgain(receiver, [...acknowledged].slice(-2_000))
    await drained(receiver, fleet)
    const deadLetters = await receiver.inbox.deadLetters.list({ limit: 1_000 })
    return {
      acknowledged: acknowledged.size,
      ...(await compare(server, acknowledged)),
      stuck,
      acceptedTwice,
      deadLetters: deadLetters.map(({ key, failures }) => `${key}: ${failures.map(({ message }) => message)}`),
      leasesLost: counters.reduce((sum, { leasesLost }) => sum + leasesLost, 0),
      duplicates: counters.reduce((sum, { duplicates }) => sum + duplicates, 0),
    }
  } finally {
    await receiver.close()
  }
}

/** Returns the number of events that are left when their number stays the same: 0 unless some are stuck. */
async function drained(receiver: Pick<Receiver, 'inbox'>, fleet: Fleet): Promise<number> {
  let before = Number.POSITIVE_INFINITY
  let since = Date.now()
  for (;;) {
    await fleet.check()
    const { waiting, running, retrying } = await receiver.inbox.stats()
    const left = waiting + running + retrying
    if (left < before) since = Date.now()
    before = left
    if (left === 0 || Date.now() - since > stuckMs) return left
    await sleep(100)
  }
}

/** Delivers handled events again. Returns how many of them were not recognised as duplicates. */
async function acceptAgain(receiver: Pick<Receiver, 'receive'>, keys: readonly string[]): Promise<number> {
  const payloads = keys.map((key) => samplePayload('encoding.finished', { media_id: 'again', title: key }))
  const answers = await Promise.all(payloads.map((payload) => deliver(receiver, payload)))
  return answers.filter(({ outcome }) => outcome !== 'duplicate').length
}

/** Counts the acknowledged events that lack a row of one of the two handlers, and the rows beyond the first. */
async function compare(server: PostgresServer, acknowledged: ReadonlySet<string>) {
  const rows = await server.query<{ handler: string; key: string; times: number; processes: string[] }>(
    'SELECT handler, key, count(*)::int AS times, array_agg(process) AS processes FROM handled GROUP BY handler, key',
  )
  const doubled = rows.filter(({ times }) => times > 1)
  const keysOf = (name: string) => new Set(rows.filter(({ handler }) => handler === name).map(({ key }) => key))
  const [first, second] = [keysOf('first'), keysOf('second')]
  const missing = [...acknowledged].filter((key) => !first.has(key) || !second.has(key))
  return {
    handled: second.size,
    missing: missing.length,
    doubled: doubled.reduce((sum, { times }) => sum + times - 1, 0),
    examples: [...missing.slice(0, 5), ...doubled.slice(0, 5).map((row) => JSON.stringify(row))],
  }
}
