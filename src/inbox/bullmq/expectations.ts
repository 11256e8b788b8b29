import { sha256 } from '#crypto'
import type { Logger } from '../../internal/logger.ts'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import { type Timer, unref } from '../../internal/timers.ts'
import { withoutCommand } from '../../storage/reach-redis.ts'
import type { OpenExpectation } from '../reading.ts'
import { type EventData, isEvent, type StoredExpectation } from './job.ts'
import { type EventQueue, jobOptions } from './queue.ts'
import { applyEffectsScript, handOverScript, readExpectedScript } from './scripts.ts'

// The expectations of a queue are beside BullMQ's own keys: `expected` has their ids by deadline, `expected:<id>` is one of
// them, `expected-of:<place>` has the ids of a rule and a media item by the time at which they began, and `ended:<place>`
// is the time of its last end, for as long as event keys are remembered.
//
// BullMQ adds an event in a script of its own, so its effects take more than one step. A process can crash after each:
//
// 1. The event is added, and its effects with it, in the data of its job. After a crash, nothing is acknowledged. The
//    effects wait for step 2 of the sender's next try or for step 4, whichever is first. A deadline that passes before that
//    is reported, even if the event would have ended it: the event counts from the time at which its effects are applied.
// 2. The effects are applied. The same step marks the job, so that this happens once. A duplicate applies the effects in
//    the job, with the times of the first delivery.
// 3. The delivery is acknowledged. What the event has ended is not reported from now on.
// 4. The first attempt applies the effects if step 2 has not, before the first handler runs. Only after that can BullMQ
//    remove the job and its mark, so a late step 2 finds the mark or no job, and begins nothing again.
//
// When a deadline passes, one step removes the expectation and adds the job of its overdue event, and its key. Thus an end
// comes before it, and nothing is reported, or after it, and does not take the report back. After a crash there is either
// the expectation or the job.

/**
 * Applies the effects of an event on expectations, unless that has been done.
 * @param ttlMs the time for which an end is remembered, in ms
 */
export async function applyEffects(
  queue: EventQueue,
  jobId: string,
  { event: { mediaId }, effects }: EventData,
  ttlMs: number,
): Promise<void> {
  if (effects === undefined) return
  const { at, ends } = effects
  const places = await Promise.all(ends.map((rule) => placeOf(rule, mediaId)))
  const begins = await Promise.all(effects.begins.map((begin) => beginOf(begin, mediaId, at)))
  const of = [jobId, ttlMs, msOf(at), ends.length, ...places, ...begins.flat()]
  await queue.run(applyEffectsScript, ...of)
}

/** Applies the effects of an event whose delivery is repeated, with the times of the first one. */
export async function applyEarlierEffects(queue: EventQueue, jobId: string, ttlMs: number): Promise<void> {
  // A job that is gone has applied them.
  const job = await queue.jobs.getJob(jobId)
  if (isEvent(job?.data)) await applyEffects(queue, jobId, job.data, ttlMs)
}

/** Hashes the rule and the media item, which can be any text. */
const placeOf = (rule: string, mediaId: string): MaybePromise<string> => sha256(JSON.stringify([rule, mediaId]))

/** Reads a time, which is a text in the data of a job that was read from Redis. */
const msOf = (date: Date): number => new Date(date).getTime()

async function beginOf({ rule, dueAt, overdue }: StoredExpectation, mediaId: string, beganAt: Date) {
  const { key, type } = overdue.event
  const open: OpenExpectation = { rule, mediaId, beganAt, dueAt }
  return [
    ...[await placeOf(rule, mediaId), await sha256(key), msOf(dueAt)],
    ...[type, JSON.stringify(overdue), JSON.stringify(open)],
  ]
}

/** Counts the open expectations. */
export const countExpected = (queue: EventQueue): Promise<number> =>
  queue.reach(() => queue.client.zcard(queue.jobs.toKey('expected')))

/** Lists the open expectations that are due first. */
export async function listExpected(queue: EventQueue, limit = 100): Promise<readonly OpenExpectation[]> {
  // If the end comes before the start, Redis reads up to the last one.
  if (limit < 1) return []
  const ids = await queue.reach(() => queue.client.zrange(queue.jobs.toKey('expected'), 0, `${limit - 1}`))
  const found: string[] = []
  for (let start = 0; start < ids.length; start += batchSizes.read) {
    const batch = ids.slice(start, start + batchSizes.read)
    found.push(...(await queue.reach(() => queue.run<string[]>(readExpectedScript, ...batch))))
  }
  return found.map((json) => {
    const { beganAt, dueAt, ...open }: OpenExpectation = JSON.parse(json)
    return { ...open, beganAt: new Date(beganAt), dueAt: new Date(dueAt) }
  })
}

/** Maximum number of expectations in one step in Redis, which other steps wait for. */
const batchSizes = { read: 1_000, handOver: 100 } as const

/** Maximum time between two checks, in ms. Another process can add a deadline at any time. */
const checkMs = 1_000

/**
 * Hands over what is overdue to the processes of the queue, at each deadline and at least every second. It does so also if
 * Redis is almost full: a job takes the place of its expectation, and is removed once it is handled.
 */
export class OverdueTimer {
  readonly #queue: EventQueue
  readonly #logger: Logger
  #timer: Timer | undefined
  #isStopped = false
  #hasFailed = false

  constructor(queue: EventQueue, logger: Logger) {
    this.#queue = queue
    this.#logger = logger
    this.#checkIn(0)
  }

  #checkIn(ms: number): void {
    if (this.#isStopped) return
    this.#timer = setTimeout(async () => this.#checkIn(await this.#check()), ms)
    unref(this.#timer)
  }

  /** Returns the time until the next check, in ms. */
  async #check(): Promise<number> {
    try {
      const of = [Date.now(), batchSizes.handOver, JSON.stringify(jobOptions)]
      const next = await this.#queue.reach(() => this.#queue.run<string | null>(handOverScript, ...of))
      this.#hasFailed = false
      return next === null ? checkMs : Math.max(0, Math.min(Number(next) - Date.now(), checkMs))
    } catch (error) {
      // The inbox logs an outage of Redis.
      if (!this.#hasFailed && this.#queue.isReady)
        this.#logger.warn(
          { err: withoutCommand(error) },
          'Redis could not hand over what is overdue, and is asked again',
        )
      this.#hasFailed = true
      return checkMs
    }
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }
}
