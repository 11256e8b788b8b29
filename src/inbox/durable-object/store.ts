import type { ObjectStorage } from '../../storage/durable-objects.ts'
import type { InboxHost } from '../inbox.ts'
import type { Reason } from '../sql/signal.ts'
import type { NewEvent, Settled } from '../sql/store.ts'
import type { InboxLimits } from '../sqlite-tables/storage.ts'
import { SqliteStore } from '../sqlite-tables/store.ts'
import { ObjectAlarm } from './alarm.ts'
import { commitsOf, openStorage } from './storage.ts'
import { objectTransactions } from './transactions.ts'

/** Memory that the held events of an object may take (characters of their JSON). An object has 128 MB. */
const mostText = 16_000_000

/** Delay before the next clean-up, when the last one has left little (ms). */
const cleanUpMs = 10_000

/**
 * The storage of a Durable Object. It differs from a file where the platform does: writes are synchronous, no other process
 * writes, and an alarm takes the place of a process that is always there.
 */
export class ObjectStore extends SqliteStore {
  override readonly pollMs = Number.POSITIVE_INFINITY
  readonly alarm: ObjectAlarm
  readonly #host: InboxHost
  #cleansUpAt = 0

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
      mostBytes: mostText,
    })
    this.#host = host
    this.alarm = new ObjectAlarm({
      storage,
      logger: host.logger,
      dueAt: () => this.dueAt(),
      work: () => this.#handOverDue(),
    })
  }

  override open(opened: Parameters<SqliteStore['open']>[0]): void {
    super.open(async (tables) => {
      await opened(tables)
      this.alarm.update()
    })
  }

  override accept(event: NewEvent): ReturnType<SqliteStore['accept']> {
    const isNew = super.accept(event)
    this.alarm.guard()
    this.#turn()
    return isNew
  }

  override look(reason: Reason): void {
    super.look(reason)
    // Replays, retries by hand and the end of a pause.
    if (reason === 'due') this.alarm.update()
  }

  override async settle(end: Settled): Promise<boolean> {
    const isOurs = await super.settle(end)
    if (this.isEmpty) this.alarm.update()
    this.#turn()
    return isOurs
  }

  async #handOverDue(): Promise<void> {
    try {
      if (this.deadlineAt() <= Date.now()) await this.acceptDue()
    } catch (error) {
      this.#host.logger.warn({ err: error }, 'the inbox could not hand over what is overdue yet')
    }
  }

  /** Cleans up with the work there is: an object without any does not grow, and is not woken for it. */
  #turn(): void {
    if (Date.now() < this.#cleansUpAt && !this.options.storage.deadLetters.hasGrown) return
    this.#cleansUpAt = Date.now() + cleanUpMs
    this.expire().then(
      (delayMs) => {
        if (delayMs < 100) this.#cleansUpAt = 0
      },
      (error) => this.#host.logger.warn({ err: error }, 'the inbox could not clean up its storage'),
    )
  }
}
