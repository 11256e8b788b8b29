import type { ObjectStorage } from '../../storage/durable-objects.ts'
import type { InboxHost } from '../inbox.ts'
import type { Reason } from '../sql/signal.ts'
import type { NewEvent, Settled } from '../sql/store.ts'
import type { InboxLimits } from '../sqlite-tables/storage.ts'
import { cleanUpMs, SqliteStore } from '../sqlite-tables/store.ts'
import { ObjectAlarm } from './alarm.ts'
import { commitsOf, openStorage } from './storage.ts'
import { objectTransactions } from './transactions.ts'

/** Maximum number of held events that wait. */
const maxWaiting = 1_000

/** Limit of held events (characters of JSON). An object has 128 MB. */
const maxText = 16_000_000

/** Delay before the next clean-up, if the last one left little (ms). */
const cleanUpIntervalMs = 10_000

/** Delay before overdue expectations are retried, after a failure or while the inbox is full (ms). */
const handOverRetryMs = 5_000

/**
 * The store of a Durable Object. Unlike a file: writes are synchronous, no other process writes, and an alarm replaces
 * the long-running process.
 */
export class ObjectStore extends SqliteStore {
  override readonly pollMs = Number.POSITIVE_INFINITY
  readonly alarm: ObjectAlarm
  readonly #logger: InboxHost['logger']
  #cleansUpAt = 0
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
      // The event and its alarm must be stored in one turn.
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
      // First: corrects delays recorded by a clock that was ahead.
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

  override widenNextClaim(reason: Reason): void {
    super.widenNextClaim(reason)
    // A replay, a manual retry, or a changed pause.
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
      // 0: there may be room for more now.
      if ((await this.acceptDue()) === 0) return
    } catch (error) {
      this.#logger.warn({ err: error }, 'the inbox could not hand over overdue expectations and will retry')
    }
    if (super.deadlineAt() <= Date.now()) this.#handsOverAt = Date.now() + handOverRetryMs
  }

  /** Cleans up along with other work: an idle object doesn't grow, and isn't woken for this. */
  async #cleanUp(): Promise<void> {
    if (Date.now() < this.#cleansUpAt && !this.options.storage.deadLetters.hasGrown) return
    this.#cleansUpAt = Date.now() + cleanUpIntervalMs
    try {
      if ((await this.expire()) === cleanUpMs.busy) this.#cleansUpAt = 0
    } catch (error) {
      this.#logger.warn({ err: error }, 'the inbox could not clean up its storage')
    }
  }
}
