import type { ParseUnreadable } from '../inbox.ts'
import type { DeadLetter, DeadLetters } from '../reading.ts'
import { reviveAccepted } from '../shared/stored.ts'
import { isEvent, isUnreadable, progressOf, toUnreadable, type UnreadableData } from './job-data.ts'
import type { EventJob, EventQueue } from './queue.ts'

/** The number of steps that are sent to Redis at a time. */
const batchSize = 100

/** Dead letters: the failed jobs of the queue. */
export class BullmqDeadLetters implements DeadLetters {
  readonly #queue: EventQueue
  readonly #parse: ParseUnreadable | undefined
  readonly #ttlMs: number

  /**
   * @param parse parses an unreadable delivery. Without it, a replayed delivery is passed on to a process with a receiver
   * @param ttlMs the time for which a discarded event is remembered, in ms
   */
  constructor(queue: EventQueue, parse: ParseUnreadable | undefined, ttlMs: number) {
    this.#queue = queue
    this.#parse = parse
    this.#ttlMs = ttlMs
  }

  async list({ limit = 100, offset = 0 }: { limit?: number; offset?: number } = {}): Promise<readonly DeadLetter[]> {
    // BullMQ takes an end before the start for the last job.
    if (limit < 1) return []
    const jobs = await this.#queue.reach((queue) => queue.getFailed(offset, offset + limit - 1))
    return jobs.map(toDeadLetter).filter((deadLetter) => deadLetter !== undefined)
  }

  /** Lists the keys of all dead letters there are now, oldest first. */
  async keys(): Promise<readonly string[]> {
    const ids = await this.#queue.reach((jobs) => jobs.getRanges(['failed'], 0, -1, true))
    const jobs = await inBatches(ids, (id) => this.#queue.reach((queue) => queue.getJob(id)))
    return jobs.map(toDeadLetter).flatMap((deadLetter) => deadLetter?.key ?? [])
  }

  /** Replays dead letters, and returns the keys that one had. */
  async replayMany(keys: readonly string[]): Promise<readonly string[]> {
    const replayed = await inBatches(keys, (key) => this.replay(key))
    return keys.filter((_, index) => replayed[index])
  }

  /** Deletes dead letters for good, and returns the keys that one had. */
  async discardMany(keys: readonly string[]): Promise<readonly string[]> {
    const discarded = await inBatches(keys, (key) => this.discard(key))
    return keys.filter((_, index) => discarded[index])
  }

  async get(key: string): Promise<DeadLetter | undefined> {
    return toDeadLetter(await this.#find(key))
  }

  async replay(key: string): Promise<boolean> {
    const job = await this.#find(key)
    if (job === undefined) return false
    if (this.#parse === undefined || !isUnreadable(job.data)) return this.#queue.revive(job)
    return this.#replayUnreadable(job, job.data, this.#parse)
  }

  /** Turns the job into the event's, in one step. It stays a dead letter until the next step revives it. */
  async #replayUnreadable(job: EventJob, data: UnreadableData, parse: ParseUnreadable): Promise<boolean> {
    const unreadable = toUnreadable(data)
    const event = await parse(unreadable)
    const conversion = await this.#queue.convert(job, { event, receivedAt: unreadable.receivedAt })
    if (conversion === 'known') return this.#queue.discard(job, 0)
    return conversion === 'converted' && (await this.#queue.revive(job))
  }

  async discard(key: string): Promise<boolean> {
    const job = await this.#find(key)
    // An unreadable delivery that arrives again is kept again.
    return job !== undefined && (await this.#queue.discard(job, isUnreadable(job.data) ? 0 : this.#ttlMs))
  }

  async #find(key: string): Promise<EventJob | undefined> {
    const job = await this.#queue.find(key)
    if (job === undefined) return undefined
    return (await this.#queue.reach(() => job.isFailed())) ? job : undefined
  }
}

async function inBatches<Item, Result>(
  items: readonly Item[],
  run: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  for (let start = 0; start < items.length; start += batchSize)
    results.push(...(await Promise.all(items.slice(start, start + batchSize).map(run))))
  return results
}

/** Makes a dead letter of a failed job. `undefined`: the job was removed meanwhile, or another program added it. */
function toDeadLetter(job: EventJob | undefined): DeadLetter | undefined {
  if (job === undefined) return undefined
  const { data, attemptsMade: attempts, finishedOn, failedReason } = job
  const { completed, failures = [{ handler: 'none', message: failedReason }] } = progressOf(job.progress)
  const end = { completed, failures, diedAt: new Date(finishedOn as number) }
  if (isEvent(data)) {
    const accepted = reviveAccepted(data)
    return { ...accepted, key: accepted.event.key, attempts, ...end }
  }
  if (!isUnreadable(data)) return undefined
  const unreadable = toUnreadable(data)
  return { key: data.key, receivedAt: unreadable.receivedAt, event: undefined, unreadable, attempts, ...end }
}
