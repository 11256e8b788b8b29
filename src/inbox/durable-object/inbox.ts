import type { Logger } from '../../internal/logger.ts'
import type { ObjectStorage } from '../../internal/storage/durable-objects.ts'
import { nextTurn } from '../../internal/timers.ts'
import type { InboxHost } from '../inbox.ts'
import { checkQuery } from '../operations/event-query.ts'
import type { EventQuery } from '../reading.ts'
import type { PlacedPage } from '../sql/events.ts'
import { SqlInbox } from '../sql/inbox.ts'
import type { InboxLimits } from '../sqlite/database.ts'
import { ObjectAlarm } from './alarm.ts'
import { ObjectDatabase } from './database.ts'

/** Delay between two clean-ups, if the last one found nothing (ms). */
const cleanUpIntervalMs = 10_000

/** A clean-up that asks for the next one so soon may have left something (ms). */
const moreMs = 100

/** Delay before overdue expectations are retried, after a failure or while the inbox is full (ms). */
const dueRetryMs = 5_000

/** The inbox of an object. It does its upkeep along with other work, and an alarm wakes it. */
export class ObjectInbox extends SqlInbox {
  readonly #logger: Logger
  readonly #database: ObjectDatabase
  readonly #alarm: ObjectAlarm
  #cleansUpAt = 0
  #acceptsDueAt = 0

  constructor(host: InboxHost, storage: ObjectStorage, limits: Required<InboxLimits>) {
    const database = new ObjectDatabase(host, storage, limits)
    const { concurrency, ttlMs, maxDeadLetters } = limits
    super(host, database, { handles: true, concurrency, ttlMs, maxDeadLetters, isAlwaysOn: false })
    this.#logger = host.logger
    this.#database = database
    this.#alarm = new ObjectAlarm({
      storage,
      logger: host.logger,
      workAt: () => database.workAt(),
      deadlineAt: () => this.#deadlineAt(),
      acceptDue: () => this.#acceptDue(),
    })
    database.watcher = {
      written: (isEmpty) => this.#written(isEmpty),
      opened: async () => {
        await this.#acceptDue()
        this.#alarm.update()
      },
    }
    this.#alarm.update()
  }

  #written(isEmpty: boolean): void {
    if (isEmpty) this.#alarm.update()
    else this.#alarm.guard()
    void this.#cleanUp()
  }

  #deadlineAt(): number {
    return Math.max(this.#database.deadlineAt(), this.#acceptsDueAt)
  }

  async #acceptDue(): Promise<void> {
    if (this.#deadlineAt() > Date.now()) return
    try {
      // 0: there may be more.
      if ((await this.upkeep.fireOverdue()) === 0) return
    } catch (error) {
      this.#logger.warn({ err: error }, 'the inbox could not hand over overdue expectations and will retry')
    }
    if (this.#database.deadlineAt() <= Date.now()) this.#acceptsDueAt = Date.now() + dueRetryMs
  }

  /** An idle object doesn't grow, and isn't woken for this. */
  async #cleanUp(): Promise<void> {
    if (Date.now() < this.#cleansUpAt) return
    this.#cleansUpAt = Date.now() + cleanUpIntervalMs
    try {
      let found = false
      while ((await this.upkeep.expire()) < moreMs) {
        found = true
        await nextTurn()
      }
      // There may be more with the next write.
      if (found) this.#cleansUpAt = 0
    } catch (error) {
      this.#logger.warn({ err: error }, 'the inbox could not clean up its storage')
    }
  }

  /** Lists events with their ids. */
  page(query?: EventQuery): Promise<PlacedPage> {
    return this.events.page(checkQuery(query))
  }

  /** Handles the object's alarm. Resolves once the work that is due is done. */
  alarm(): Promise<void> {
    return this.#alarm.ring(() => this.hasClosed)
  }
}
