import type { DeadLetter, DeadLetters, ParseUnreadable } from '../inbox.ts'
import { reviveAccepted } from '../shared/stored.ts'
import { isEvent, isUnreadable, progressOf, toUnreadable, type UnreadableData } from './job-data.ts'
import type { EventJob, EventQueue } from './queue.ts'

/** Dead letters: the failed jobs of the queue. */
export class BullmqDeadLetters implements DeadLetters {
  readonly #queue: EventQueue
  readonly #parse: ParseUnreadable
  readonly #ttlMs: number

  constructor(queue: EventQueue, parse: ParseUnreadable, ttlMs: number) {
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

  async get(key: string): Promise<DeadLetter | undefined> {
    return toDeadLetter(await this.#find(key))
  }

  async replay(key: string): Promise<boolean> {
    const job = await this.#find(key)
    if (job === undefined) return false
    return isUnreadable(job.data) ? this.#replayUnreadable(job, job.data) : this.#queue.revive(job)
  }

  /** Turns the job into the event's, in one step. It stays a dead letter until the next step revives it. */
  async #replayUnreadable(job: EventJob, data: UnreadableData): Promise<boolean> {
    const unreadable = toUnreadable(data)
    const event = await this.#parse(unreadable)
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
