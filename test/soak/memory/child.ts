import { setTimeout as sleep } from 'node:timers/promises'
import { bullmqInbox } from '../../../src/inbox/bullmq.ts'
import type { InboxDefinition } from '../../../src/inbox/inbox.ts'
import { postgresInbox } from '../../../src/inbox/postgres.ts'
import { sqliteInbox } from '../../../src/inbox/sqlite.ts'
import { createReceiver, lruStore, memoryInbox, unverified } from '../../../src/index.ts'
import { deliver, encodePayload, samplePayload } from '../../../src/testing/index.ts'
import { seeded } from '../../support/seeded.ts'
import { silent } from '../../support/silent.ts'
import type { FromMeasured, MeasuredInbox, MemoryTask } from './sample.ts'

// Delivers to its own receiver at a steady rate, and measures itself. In process: what grows is the receiver's, and not
// a sender's or a socket's.

const { inbox, place, rate, durationMs, ttlMs, seed } = JSON.parse(process.argv[2] as string) as MemoryTask
const random = seeded(seed)
/** The keys that the memory inbox remembers. They are full before the first sample. */
const max = 2_000
/** The unreadable deliveries that an inbox keeps. They are full before the first sample. */
const maxUnreadable = 1_000

/** Longer than a busy machine holds up a server, in ms. */
const timeoutMs = 60_000

const inboxes: Readonly<Record<MeasuredInbox, () => InboxDefinition>> = {
  memory: () => memoryInbox({ store: lruStore({ max, ttlMs }) }),
  sqlite: () => sqliteInbox({ path: place, ttlMs }),
  bullmq: () => bullmqInbox({ connection: place, ttlMs, timeoutMs }),
  postgres: () => postgresInbox({ connection: place, ttlMs, timeoutMs }),
}
const receiver = createReceiver({
  verify: unverified(),
  inbox: inboxes[inbox](),
  retry: { attempts: 10, baseMs: 10, maxMs: 20 },
  logger: silent,
})
const totals = { accepted: 0, duplicates: 0, rejected: 0, handled: 0 }
receiver.onAny(
  async () => {
    await sleep(random() * 4)
    // A hundredth of the events has a retry.
    if (random() < 0.01) throw new Error('unlucky')
  },
  { name: 'first' },
)
receiver.onAny(() => void totals.handled++, { name: 'second' })

const tell = (message: FromMeasured) => void process.send?.(message)
/** The last bodies. They are repeated. */
const recent: Uint8Array[] = []
const media = 500
const firstAt = Date.parse('2026-01-01')
let created = 0

function nextBody(): Uint8Array {
  // A fifth are duplicates.
  const repeated = random() < 0.2 ? recent[Math.floor(random() * recent.length)] : undefined
  if (repeated !== undefined) return repeated
  if (random() < 0.01) return new TextEncoder().encode(`{"not":"a payload ${random()}"}`)
  const body = encodePayload(
    samplePayload('encoding.finished', {
      media_id: `media ${Math.floor(random() * media)}`,
      emitted_at: new Date(firstAt + created++).toISOString(),
    }),
  )
  recent.push(body)
  if (recent.length > 200) recent.shift()
  return body
}

let unanswered = 0

async function call(body: Uint8Array): Promise<void> {
  unanswered++
  const { outcome } = await deliver(receiver, body)
  unanswered--
  if (outcome === 'accepted') totals.accepted++
  else if (outcome === 'duplicate') totals.duplicates++
  else if (outcome !== 'malformed') totals.rejected++
}

/** Fills what has a limit. */
async function warmUp(): Promise<void> {
  for (let i = 0; i < max * 1.5; i += 20) {
    await Promise.all(Array.from({ length: 20 }, () => call(nextBody())))
    while ((await receiver.inbox.stats()).waiting > 100) await sleep(5)
  }
  for (let i = 0; i < maxUnreadable; i++) await call(new TextEncoder().encode(`{"not":"a payload, ${i}"}`))
}

function sample(startedAt: number): void {
  for (let i = 0; i < 2; i++) globalThis.gc?.()
  const { heapUsed, external, rss } = process.memoryUsage()
  const minute = (performance.now() - startedAt) / 60_000
  tell({ sample: { minute, events: totals.accepted, heap: heapUsed + external, rss } })
}

async function handled(): Promise<void> {
  // An event that is accepted while the inbox counts is in no count.
  while (unanswered > 0) await sleep(5)
  for (;;) {
    const { waiting, running, retrying } = await receiver.inbox.stats()
    if (waiting + running + retrying === 0) return
    await sleep(20)
  }
}

// It ends with the process that started it.
process.on('disconnect', () => process.exit(1))
await receiver.ready()
await warmUp()
await handled()

/** On a machine that is too slow for the rate, the events that wait would be measured. */
async function backlogHandled(): Promise<void> {
  while ((await receiver.inbox.stats()).waiting > 100) await sleep(10)
}

const startedAt = performance.now()
const sampleEveryMs = Math.max(500, durationMs / 240)
let sampledAt = startedAt
let deliveredAt = startedAt
while (sampledAt < startedAt + durationMs) {
  await sleep(50)
  await backlogHandled()
  const now = performance.now()
  // A pause is not made up for.
  const due = (Math.min(now - deliveredAt, 200) / 1_000) * rate
  for (let sent = 0; sent < due; sent++) void call(nextBody())
  deliveredAt = now
  if (now - sampledAt < sampleEveryMs) continue
  sampledAt = now
  sample(startedAt)
}
await handled()
tell({ totals })
await receiver.close()
process.disconnect()
