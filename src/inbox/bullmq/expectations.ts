import { sha256 } from '#crypto'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import type { AcceptedEvent, Expectation, ExpectationChanges, InboxHost } from '../inbox.ts'
import { limitOf } from '../operations/page.ts'
import type { OpenExpectation } from '../reading.ts'
import type { ChangeParameters, EventData } from './job.ts'
import { type EventQueue, inBatches, unfinishedTtlMs } from './queue.ts'
import { repeat } from './repeat.ts'

// The expectations of a queue: `expected` has their ids by deadline, `expected-data` has them by id, `expected-of:<place>` has
// the ids of a rule and a media item by the time at which they began, and `ended:<place>` is the time of its last end, for as
// long as event keys are remembered.
//
// BullMQ adds an event in a step of its own, so its effects take more than one. A process can crash after each:
//
// 1. The event is added, and its effects with it, in the data of its job. After a crash, nothing is acknowledged. The
//    effects wait for step 2 of the sender's next try or for step 4, whichever is first. A deadline that passes before that
//    is reported, even if the event would have ended it: the event counts from the time at which its effects are applied.
// 2. The effects are applied. The same step marks the event's key, so that this happens once. A duplicate applies the
//    effects in the job, with the times of the first delivery.
// 3. The delivery is acknowledged. What the event has ended is not reported from now on.
// 4. The first attempt applies the effects if step 2 has not, before the first handler runs.
//
// When a deadline passes, one step takes the expectation: an end comes before it, and nothing is reported, or after it, and
// does not take the report back. The next step adds the overdue event, and the last one removes the expectation. After a
// crash the next process takes it again, and finds the event known if it was added. BullMQ's delayed jobs could not do
// that: an end and a deadline would race, and deadlines would be by the clock of a process.

/** An expectation in Redis, with the event that it becomes. Its times are texts. */
interface StoredExpectation extends OpenExpectation {
  readonly overdue: EventData
}

/** The part of a receiver that says what becomes of an event. */
export type Accepting = Pick<InboxHost, 'handlersOf' | 'expectations'>

/** Adds an event and applies its effects on expectations. Returns `false` if it was known. */
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
  // Those of a repeated delivery have other times than those of the first. A job that is gone has applied them.
  const stored = isNew ? data.changes : ((await queue.find(key))?.data as EventData | undefined)?.changes
  if (stored !== undefined) await queue.reach(() => applyChanges(queue, accepted, stored, ttlMs))
  return isNew
}

/**
 * Makes the parameters of the script that applies the effects.
 * @param aheadMs how far the clock that set the deadlines is ahead of that of Redis (ms)
 */
async function expectationChanges(
  { at, begins, ends }: ExpectationChanges,
  mediaId: string,
  aheadMs: number,
  storeOverdue: (overdue: AcceptedEvent) => EventData,
): Promise<ChangeParameters> {
  const begin = async ({ rule, dueAt, overdue }: Expectation) => {
    const stored: StoredExpectation = { rule, mediaId, beganAt: at, dueAt, overdue: storeOverdue(overdue) }
    const id = `${await placeOf(rule, mediaId)}:${await sha256(overdue.event.key)}`
    return [id, dueAt.getTime() - aheadMs, JSON.stringify(stored)]
  }
  const places = await Promise.all(ends.map((rule) => placeOf(rule, mediaId)))
  return [at.getTime(), ends.length, ...places, ...(await Promise.all(begins.map(begin))).flat()]
}

/** Hashes the rule and the media item, which can be any text. */
const placeOf = (rule: string, mediaId: string): MaybePromise<string> => sha256(JSON.stringify([rule, mediaId]))

/**
 * Applies the effects of an event on expectations, unless that has been done.
 * @param ttlMs the time for which an end is remembered, in ms
 */
export async function applyChanges(
  queue: EventQueue,
  { event }: AcceptedEvent,
  changes: ChangeParameters,
  ttlMs: number,
): Promise<void> {
  await queue.own.run('applyChanges', await sha256(event.key), unfinishedTtlMs, ttlMs, ...changes)
}

/** Counts the open expectations. */
export const countExpected = (queue: EventQueue): Promise<number> =>
  queue.reach(() => queue.client.zcard(queue.own.of('expected')))

/** Lists the open expectations that are due first. */
export async function listExpected(queue: EventQueue, given?: number): Promise<readonly OpenExpectation[]> {
  const { client, own } = queue
  const limit = limitOf('expected', given)
  // If the end comes before the start, Redis reads up to the last one.
  const ids = limit < 1 ? [] : await queue.reach(() => client.zrange(own.of('expected'), 0, `${limit - 1}`))
  return inBatches(ids, async (id) => {
    const json = await queue.reach(() => client.hget(own.of('expected-data'), id))
    if (json === null) return undefined
    const { overdue: _, beganAt, dueAt, ...open }: StoredExpectation = JSON.parse(json)
    return { ...open, beganAt: new Date(beganAt), dueAt: new Date(dueAt) }
  })
}

/** Maximum number of expectations that this process hands over at a time. */
const batchSize = 100

/** The time after which another process takes what this one has not handed over (ms). */
const leaseMs = 5_000

/** Maximum time between two checks, in ms. Another process can add a deadline at any time. */
const checkMs = 1_000

type Taken = [nextInMs: string | null, overdue: [id: string, data: string][]]

/**
 * Hands over what is overdue to the processes of the queue, at each deadline and at least every second. It does so also if
 * Redis is almost full: a job takes the place of its expectation, and is removed once it is handled. Returns a function that
 * stops it.
 */
export const handOverOverdue = (queue: EventQueue): (() => void) =>
  repeat(async () => {
    try {
      const [next, taken] = await queue.reach(() => queue.own.run<Taken>('takeOverdue', batchSize, leaseMs))
      await Promise.all(taken.map(([id, data]) => handOver(queue, id, JSON.parse(data))))
      return next === null ? checkMs : Math.max(0, Math.min(Number(next), checkMs))
    } catch {
      // The queue logs why.
      return checkMs
    }
  })

async function handOver(queue: EventQueue, id: string, { overdue }: StoredExpectation): Promise<void> {
  await queue.add(overdue)
  await queue.reach(() => queue.own.run('removeExpected', id))
}
