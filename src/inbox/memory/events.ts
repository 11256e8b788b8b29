import { stopRun } from '../engine/attempts.ts'
import { deadRecord } from '../operations/dead-letters.ts'
import { makeEventPage } from '../operations/event-query.ts'
import type { EventOutcomes, EventPage, EventQuery, EventRecord, InboxEvents } from '../reading.ts'
import type { MemoryDeadLetters } from './dead-letters.ts'
import type { MemoryEngine } from './engine.ts'
import type { Jobs } from './jobs.ts'

/** The events in memory: unfinished ones and dead letters. */
export class MemoryEvents implements InboxEvents {
  readonly states = ['waiting', 'running', 'retrying', 'dead'] as const
  readonly #jobs: Jobs
  readonly #deadLetters: MemoryDeadLetters
  readonly #engine: MemoryEngine

  constructor(jobs: Jobs, deadLetters: MemoryDeadLetters, engine: MemoryEngine) {
    this.#jobs = jobs
    this.#deadLetters = deadLetters
    this.#engine = engine
  }

  list(query?: EventQuery): EventPage {
    return makeEventPage(this.#all(), query)
  }

  get(key: string): EventRecord | undefined {
    const job = this.#jobs.get(key)
    if (job !== undefined) return job.shown()
    const deadEvent = this.#deadLetters.event(key)
    return deadEvent && deadRecord(deadEvent)
  }

  outcomes(keys: readonly string[]): EventOutcomes {
    return keys.map((key) => this.get(key)?.state).map((state) => state && (state === 'dead' ? 'dead' : 'open'))
  }

  retryNow(key: string): boolean {
    return this.#engine.retryNow(this.#jobs.get(key))
  }

  stop(key: string): boolean {
    return stopRun(this.#jobs.get(key)?.attempt)
  }

  *#all(): IterableIterator<EventRecord> {
    for (const job of this.#jobs) yield job.shown()
    for (const deadEvent of this.#deadLetters.events()) yield deadRecord(deadEvent)
  }
}
