import { sha256 } from '#crypto'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import type { AcceptedEvent, Expectation, ExpectationChanges, InboxHost } from '../inbox.ts'
import { checkLimit } from '../operations/page.ts'
import type { OpenExpectation } from '../reading.ts'
import type { ChangeParameters, EventData } from './job.ts'
import { type EventQueue, hashKey, inBatches, unfinishedTtlMs } from './queue.ts'
import { repeat } from './repeat.ts'

// Redis keys: `expected` has the ids by deadline, `expected-data` the data by id, `expected-of:<place>` the ids of a
// rule and media item by start time, and `ended:<place>` the time of its last end, kept as long as event keys.
//
// BullMQ adds an event in one step, so its expectation changes need another. A process may crash after any step:
//
// 1. Add the event, with its changes in the job's data. After a crash, nothing is acknowledged, and the changes wait
//    for step 2 of the sender's retry or for step 4. A deadline that passes first is reported even if the event would
//    have ended it: an event counts from the time its changes are applied.
// 2. Apply the changes, once: the same script marks the event's key. A duplicate applies the changes stored in the job,
//    with the first delivery's times.
// 3. Acknowledge the delivery. What the event ended is never reported from now on.
// 4. The first attempt applies the changes if step 2 has not, before any handler runs.
//
// When a deadline passes, one script takes the expectation. An end before that prevents the report; an end after it
// doesn't withdraw it. Then the overdue event is added, and finally the expectation removed. After a crash the next
// process takes it again, and finds the event known if it was added. Delayed BullMQ jobs would race with ends, and
// follow a process's clock.

/** An expectation as JSON in Redis, with its overdue event. Its times are strings. */
interface StoredExpectation extends OpenExpectation {
  readonly overdue: EventData
}

/** The part of a receiver needed to add events. */
export type Accepting = Pick<InboxHost, 'handlersOf' | 'expectations'>

/** Returns `false` if the event was known. */
export async function addEvent(
  queue: EventQueue,
  { handlersOf, expectations }: Accepting,
  accepted: AcceptedEvent & Pick<EventData, 'owed' | 'since'>,
  ttlMs: number,
): Promise<boolean> {
  const { key, mediaId } = accepted.event
  const owing = { owed: handlersOf(accepted.event), ...accepted }
  const changes = expectations?.(accepted)
  if (changes === undefined) return queue.add(owing)
  const storeOverdue = (overdue: AcceptedEvent) => ({ ...overdue, owed: handlersOf(overdue.event) })
  const data = { ...owing, changes: await expectationChanges(changes, mediaId, await queue.aheadMs(), storeOverdue) }
  const isNew = await queue.add(data)
  // Use the first delivery's changes: a repeated one has other times. A job that is gone has applied them.
  const stored = isNew ? data.changes : ((await queue.find(key))?.data as EventData | undefined)?.changes
  if (stored !== undefined) await queue.reach(() => applyChanges(queue, accepted, stored, ttlMs))
  return isNew
}

/** @param aheadMs skew of the clock that set the deadlines, relative to Redis (ms) */
async function expectationChanges(
  { at, begins, ends }: ExpectationChanges,
  mediaId: string,
  aheadMs: number,
  storeOverdue: (overdue: AcceptedEvent) => EventData,
): Promise<ChangeParameters> {
  const begin = async ({ rule, dueAt, overdue }: Expectation) => {
    const stored: StoredExpectation = { rule, mediaId, beganAt: at, dueAt, overdue: storeOverdue(overdue) }
    const id = `${await hashPlace(rule, mediaId)}:${await hashKey(overdue.event.key)}`
    return [id, dueAt.getTime() - aheadMs, JSON.stringify(stored)]
  }
  const places = await Promise.all(ends.map((rule) => hashPlace(rule, mediaId)))
  return [at.getTime(), ends.length, ...places, ...(await Promise.all(begins.map(begin))).flat()]
}

/** Hashes rule and media item: both may be any text. */
const hashPlace = (rule: string, mediaId: string): MaybePromise<string> => sha256(JSON.stringify([rule, mediaId]))

/** Idempotent. `ttlMs`: how long an end is remembered. */
export async function applyChanges(
  queue: EventQueue,
  { event }: AcceptedEvent,
  changes: ChangeParameters,
  ttlMs: number,
): Promise<void> {
  await queue.own.run('applyChanges', await hashKey(event.key), unfinishedTtlMs, ttlMs, ...changes)
}

export const countExpected = (queue: EventQueue): Promise<number> =>
  queue.reach(() => queue.client.zcard(queue.own.of('expected')))

export async function listExpected(queue: EventQueue, given?: number): Promise<readonly OpenExpectation[]> {
  const { client, own } = queue
  const limit = checkLimit('expected', given)
  // If the end comes before the start, Redis reads up to the last one.
  const ids = limit < 1 ? [] : await queue.reach(() => client.zrange(own.of('expected'), 0, `${limit - 1}`))
  return inBatches(ids, async (id) => {
    const json = await queue.reach(() => client.hget(own.of('expected-data'), id))
    if (json === null) return undefined
    const { overdue: _, beganAt, dueAt, ...open }: StoredExpectation = JSON.parse(json)
    return { ...open, beganAt: new Date(beganAt), dueAt: new Date(dueAt) }
  })
}

/** Overdue expectations handed over per round. */
const batchSize = 100

/** How long a taken expectation is reserved (ms). Then another process may hand it over. */
const leaseMs = 5_000

/** Longest time between rounds (ms). Another process can add a deadline at any time. */
const checkMs = 1_000

type Taken = [nextInMs: string | null, overdue: [id: string, data: string][]]

/**
 * Turns overdue expectations into events, at each deadline and at least every second. Runs even if Redis is almost
 * full: the job replaces its expectation and goes once handled. Returns a function that stops it.
 */
export const acceptOverdue = (queue: EventQueue): (() => void) =>
  repeat(async () => {
    try {
      const [next, taken] = await queue.reach(() => queue.own.run<Taken>('takeOverdue', batchSize, leaseMs))
      await Promise.all(taken.map(([id, data]) => accept(queue, id, JSON.parse(data))))
      return next === null ? checkMs : Math.max(0, Math.min(Number(next), checkMs))
    } catch {
      // The queue logs why.
      return checkMs
    }
  })

async function accept(queue: EventQueue, id: string, { overdue }: StoredExpectation): Promise<void> {
  await queue.add(overdue)
  await queue.reach(() => queue.own.run('removeExpected', id))
}
