import type { ObjectStorage } from '../../storage/durable-objects.ts'
import type { InboxHost } from '../inbox.ts'
import type { Reason } from '../sql/signal.ts'
import type { NewEvent, Settled } from '../sql/store.ts'
import type { InboxLimits } from '../sqlite-tables/storage.ts'
import { cleanUpMs, SqliteStore } from '../sqlite-tables/store.ts'
import { ObjectAlarm } from './alarm.ts'
import { commitsOf, openStorage } from './storage.ts'
import { objectTransactions } from './transactions.ts'

/** Held events that wait beyond which no more are claimed. */
const maxWaiting = 1_000

/** Memory that the held events of an object may take (characters of their JSON). An object has 128 MB. */
const maxText = 16_000_000

/** Delay before the next clean-up, when the last one has left little (ms). */
const cleanUpIntervalMs = 10_000

/** Delay before what is overdue is handed over again, after a failure or while there is no room for it (ms). */
const handOverRetryMs = 5_000

/**
 * The storage of a Durable Object. It differs from a file where the platform does: writes are synchronous, no other process
 * writes, and an alarm takes the place of a process that is always there.
 */
export class ObjectStore extends SqliteStore {
  override readonly pollMs = Number.POSITIVE_INFINITY
  readonly alarm: ObjectAlarm
  readonly #logger: InboxHost['logger']
  #cleansUpAt = 0
  /** Nothing overdue is handed over before this time (ms since the epoch). */
  #handsOverAt = 0

  constructor(host: InboxHost, storage: ObjectStorage, limits: InboxLimits) {
    const tables = openStorage(storage)
    const commits = commitsOf(storage, tables.events)
    super({
      storage: tables,
      commits,
      owner: tables.owner,
      transact: objectTransactions(storage.sql, commits, tables.events),
      limits,
      host,
      readAhead: maxWaiting,
      maxBytes: maxText,
      // An event is stored and its alarm set in one turn.
      countsAtOnce: true,
    })
    this.#logger = host.logger
    this.alarm = new ObjectAlarm({
      storage,
      logger: host.logger,
      workAt: () => this.workAt(),
      deadlineAt: () => this.deadlineAt(),
      handOver: () => this.#handOver(),
    })
  }

  override open(opened: Parameters<SqliteStore['open']>[0]): void {
    super.open(async (tables) => {
      // First of all: it corrects the delays that a clock that was ahead has recorded.
      await this.#cleanUp()
      await opened(tables)
      await this.#handOver()
      this.alarm.update()
    })
    this.alarm.update()
  }

  override accept(event: NewEvent): ReturnType<SqliteStore['accept']> {
    const isNew = super.accept(event)
    this.alarm.guard()
    void this.#cleanUp()
    return isNew
  }

  override look(reason: Reason): void {
    super.look(reason)
    // A replay, a retry by hand, or a pause or its end.
    if (reason === 'due') this.alarm.update()
  }

  override async settle(end: Settled): Promise<boolean> {
    const isOurs = await super.settle(end)
    if (this.isEmpty) this.alarm.update()
    void this.#cleanUp()
    return isOurs
  }

  protected override deadlineAt(): number {
    return Math.max(super.deadlineAt(), this.#handsOverAt)
  }

  async #handOver(): Promise<void> {
    if (this.deadlineAt() > Date.now()) return
    try {
      // There may be room for more.
      if ((await this.acceptDue()) === 0) return
    } catch (error) {
      this.#logger.warn({ err: error }, 'the inbox could not hand over what is overdue yet')
    }
    if (super.deadlineAt() <= Date.now()) this.#handsOverAt = Date.now() + handOverRetryMs
  }

  /** Cleans up with the work there is: an object without any does not grow, and is not woken for it. */
  async #cleanUp(): Promise<void> {
    if (Date.now() < this.#cleansUpAt && !this.options.storage.deadLetters.hasGrown) return
    this.#cleansUpAt = Date.now() + cleanUpIntervalMs
    try {
      // It has not finished.
      if ((await this.expire()) === cleanUpMs.busy) this.#cleansUpAt = 0
    } catch (error) {
      this.#logger.warn({ err: error }, 'the inbox could not clean up its storage')
    }
  }
}
