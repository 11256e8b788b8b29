import { parseAgain, type ReplayingReceiver } from '../operations/dead-letters.ts'
import { replayAll } from '../operations/replay-all.ts'
import type { DeadLetter, DeadLetters, ReplayAllOptions, ReplayReport } from '../reading.ts'
import { isUnreadable, toDeadLetter, toUnreadable, type UnreadableData } from './job.ts'
import type { EventJob, EventQueue } from './queue.ts'

/** The number of steps that this process sends to Redis at a time. */
const batchSize = 100

/** Dead letters: the failed jobs of the queue. */
export class BullmqDeadLetters implements DeadLetters {
  readonly #queue: EventQueue
  readonly #receiver: ReplayingReceiver | undefined
  readonly #ttlMs: number

  /**
   * @param receiver parses an unreadable delivery. Without it, a replayed delivery goes to a process with a receiver
   * @param ttlMs the time for which a discarded event is remembered, in ms
   */
  constructor(queue: EventQueue, receiver: ReplayingReceiver | undefined, ttlMs: number) {
    this.#queue = queue
    this.#receiver = receiver
    this.#ttlMs = ttlMs
  }

  async list({ limit = 100, offset = 0 }: { limit?: number; offset?: number } = {}): Promise<readonly DeadLetter[]> {
    // If the end comes before the start, BullMQ reads up to the last job.
    if (limit < 1) return []
    const jobs = await this.#queue.reach((queue) => queue.getFailed(offset, offset + limit - 1))
    return jobs.flatMap((job) => toDeadLetter(job) ?? [])
  }

  /** Lists the keys of all current dead letters, oldest first. */
  async keys(): Promise<readonly string[]> {
    const ids = await this.#queue.reach((jobs) => jobs.getRanges(['failed'], 0, -1, true))
    const jobs = await inBatches(ids, (id) => this.#queue.reach((queue) => queue.getJob(id)))
    // A job may have been removed meanwhile.
    return jobs.flatMap((job) => (job && toDeadLetter(job)?.key) ?? [])
  }

  /** Replays dead letters, and returns the keys of the replayed ones. */
  async replayMany(keys: readonly string[]): Promise<readonly string[]> {
    const replayed = await inBatches(keys, (key) => this.replay(key))
    return keys.filter((_, index) => replayed[index])
  }

  /** Deletes dead letters permanently, and returns the keys of the deleted ones. */
  async discardMany(keys: readonly string[]): Promise<readonly string[]> {
    const discarded = await inBatches(keys, (key) => this.discard(key))
    return keys.filter((_, index) => discarded[index])
  }

  async get(key: string): Promise<DeadLetter | undefined> {
    const job = await this.#find(key)
    return job && toDeadLetter(job)
  }

  async replay(key: string): Promise<boolean> {
    const job = await this.#find(key)
    if (job === undefined) return false
    if (this.#receiver === undefined || !isUnreadable(job.data)) return this.#queue.revive(job)
    return this.#replayUnreadable(job, job.data, this.#receiver)
  }

  replayAll(options?: ReplayAllOptions): Promise<ReplayReport> {
    return replayAll(this, options)
  }

  /** Converts the job into the job of its event, in one step. It stays a dead letter until the next step revives it. */
  async #replayUnreadable(job: EventJob, data: UnreadableData, receiver: ReplayingReceiver): Promise<boolean> {
    const parsed = await parseAgain(receiver, toUnreadable(data))
    const conversion = await this.#queue.convert(job, { ...parsed, since: new Date() })
    if (conversion === 'known') return this.#queue.discard(job, 0)
    return conversion === 'converted' && (await this.#queue.revive(job))
  }

  async discard(key: string): Promise<boolean> {
    const job = await this.#find(key)
    // If the unreadable delivery arrives again, it is kept again.
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
