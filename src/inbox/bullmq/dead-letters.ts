import type { DeadLetter, DeadLetters, ReadRefused } from '../inbox.ts'
import { unreadable } from '../shared/unreadable.ts'
import { letterOf } from './letter.ts'
import type { EventJob, EventQueue } from './queue.ts'
import { isRefused, type RefusedData, refusedOf } from './refused.ts'

/** Dead letters: the failed jobs of the queue. */
export class BullmqDeadLetters implements DeadLetters {
  readonly #events: EventQueue
  readonly #ttlMs: number
  #readRefused: ReadRefused = unreadable

  constructor(events: EventQueue, ttlMs: number) {
    this.#events = events
    this.#ttlMs = ttlMs
  }

  readWith(readRefused: ReadRefused): void {
    this.#readRefused = readRefused
  }

  async list({ limit = 100, offset = 0 }: { limit?: number; offset?: number } = {}): Promise<readonly DeadLetter[]> {
    // To BullMQ, an end before the start means the last one.
    if (limit < 1) return []
    const jobs = await this.#events.reach((queue) => queue.getFailed(offset, offset + limit - 1))
    return jobs.map(letterOf).filter((letter) => letter !== undefined)
  }

  async get(key: string): Promise<DeadLetter | undefined> {
    return letterOf(await this.#find(key))
  }

  async replay(key: string): Promise<boolean> {
    const job = await this.#find(key)
    if (job === undefined) return false
    return isRefused(job.data) ? this.#replayRefused(job, job.data) : this.#events.revive(job)
  }

  /** Its job becomes that of the event, in one step, and is a dead letter until the next one. */
  async #replayRefused(job: EventJob, data: RefusedData): Promise<boolean> {
    const refused = refusedOf(data)
    const event = await this.#readRefused(refused)
    const outcome = await this.#events.become(job, { event, receivedAt: refused.receivedAt })
    if (outcome === 'known') return this.#events.discard(job, 0)
    return outcome === 'event' && (await this.#events.revive(job))
  }

  async discard(key: string): Promise<boolean> {
    const job = await this.#find(key)
    // A refused delivery that comes again is kept again.
    return job !== undefined && (await this.#events.discard(job, isRefused(job.data) ? 0 : this.#ttlMs))
  }

  async #find(key: string): Promise<EventJob | undefined> {
    const job = await this.#events.find(key)
    if (job === undefined) return undefined
    return (await this.#events.reach(() => job.isFailed())) ? job : undefined
  }
}
