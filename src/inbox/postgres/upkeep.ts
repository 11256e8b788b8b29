import type { Logger } from '../../internal/logger.ts'
import { type Timer, unref } from '../../internal/timers.ts'
import { type Database, isAway } from './database.ts'

/** The most keys that are removed in one statement. */
const sliceSize = 1_000

/** Pauses between two clean-ups, in ms: usually, and while there is more to clean up. */
const pauses = { usual: 60_000, busy: 100 }

/** Runs work at regular intervals. A failure is logged, unless Postgres is away, and the work is done again later. */
export class Regularly {
  readonly #work: () => Promise<number>
  readonly #afterFailureMs: number
  readonly #logger: Logger
  #timer: Timer | undefined
  #running: Promise<void> | undefined
  #isStopped = false

  /** @param work resolves with the pause before it is done again, in ms */
  constructor(work: () => Promise<number>, afterFailureMs: number, logger: Logger) {
    this.#work = work
    this.#afterFailureMs = afterFailureMs
    this.#logger = logger
  }

  start(pauseMs: number): void {
    if (this.#isStopped) return
    this.#timer = setTimeout(() => {
      this.#running = this.#run().then((nextMs) => this.start(nextMs))
    }, pauseMs)
    unref(this.#timer)
  }

  /** Does the work immediately, unless it is being done. */
  now(): void {
    clearTimeout(this.#timer)
    void Promise.resolve(this.#running).then(() => {
      clearTimeout(this.#timer)
      this.start(0)
    })
  }

  async #run(): Promise<number> {
    try {
      return await this.#work()
    } catch (error) {
      if (!isAway(error)) this.#logger.error({ err: error }, 'the inbox could not do its regular work in Postgres')
      return this.#afterFailureMs
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    await this.#running
  }
}

/** Removes expired keys, some at a time. Those of unfinished events and of dead letters stay. Returns the next pause, in ms. */
export async function cleanUp(database: Database, ttlMs: number): Promise<number> {
  const { schema } = database
  const removed = await database.query(
    `DELETE FROM ${schema}.key WHERE hash IN (
       SELECT hash FROM ${schema}.key
       WHERE accepted_at < now() - $1::float8 * interval '1 ms'
         AND (SELECT 1 FROM ${schema}.event WHERE event.id = key.id) IS NULL
         AND (SELECT 1 FROM ${schema}.dead_letter WHERE event_id = key.id) IS NULL
       ORDER BY accepted_at LIMIT ${sliceSize} FOR UPDATE SKIP LOCKED
     ) RETURNING 1`,
    [ttlMs],
  )
  return removed.length < sliceSize ? pauses.usual : pauses.busy
}
