import type { InboxHost } from '../inbox.ts'
import { parseAgain, type ReplayingReceiver } from '../operations/dead-letters.ts'
import { replayAll } from '../operations/replay-all.ts'
import type { DeadLetter, DeadLetters, ReplayAllOptions, ReplayReport } from '../reading.ts'
import { applyEffects } from './expectations.ts'
import { isUnreadable, toDeadLetter, toEventData, toUnreadable, type UnreadableData } from './job.ts'
import type { EventJob, EventQueue } from './queue.ts'

/** The number of steps that this process sends to Redis at a time. */
const batchSize = 100

type Receiver = ReplayingReceiver & Pick<InboxHost, 'expectations'>

/** Dead letters: the failed jobs of the queue. */
export class BullmqDeadLetters implements DeadLetters {
  readonly #queue: EventQueue
  readonly #receiver: Receiver | undefined
  readonly #ttlMs: number

  /**
   * @param receiver parses an unreadable delivery. Without it, a replayed delivery goes to a process with a receiver
   * @param ttlMs the time for which a discarded event is remembered, in ms
   */
  constructor(queue: EventQueue, receiver: Receiver | undefined, ttlMs: number) {
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
    return inBatches(ids, async (id) => {
      const job = await this.#queue.reach((jobs) => jobs.getJob(id))
      // The job may have been removed meanwhile.
      return job && toDeadLetter(job)?.key
    })
  }

  /** Replays dead letters, and returns the keys of the replayed ones. */
  replayMany(keys: readonly string[]): Promise<readonly string[]> {
    return inBatches(keys, async (key) => ((await this.replay(key)) ? key : undefined))
  }

  /** Deletes dead letters permanently, and returns the keys of the deleted ones. */
  discardMany(keys: readonly string[]): Promise<readonly string[]> {
    return inBatches(keys, async (key) => ((await this.discard(key)) ? key : undefined))
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
  async #replayUnreadable(job: EventJob, data: UnreadableData, receiver: Receiver): Promise<boolean> {
    const parsed = toEventData(receiver, await parseAgain(receiver, toUnreadable(data)))
    const conversion = await this.#queue.convert(job, { ...parsed, since: new Date() })
    if (conversion === 'known') return this.#queue.discard(job, 0)
    if (conversion === 'gone') return false
    await this.#queue.reach(() => applyEffects(this.#queue, job.id as string, parsed, this.#ttlMs))
    return this.#queue.revive(job)
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

/** Runs a step for each id or key, many at a time, and returns the keys that the steps return. */
async function inBatches(of: readonly string[], step: (of: string) => Promise<string | undefined>): Promise<string[]> {
  const keys: (string | undefined)[] = []
  for (let start = 0; start < of.length; start += batchSize)
    keys.push(...(await Promise.all(of.slice(start, start + batchSize).map(step))))
  return keys.filter((key) => key !== undefined)
}
