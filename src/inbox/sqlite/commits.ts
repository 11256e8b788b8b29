import { WebhookError } from '../../errors.ts'
import type { Timer } from '../../internal/timers.ts'
import { inTransaction, isBusy, isSnapshotLock } from '../sqlite-tables/database.ts'
import type { WrittenEvent } from '../sqlite-tables/events.ts'
import type { Commits } from '../sqlite-tables/storage.ts'
import type { OwnedFile } from './file.ts'

/** Longest wait for another connection's lock (ms). A sender waits 3 s for its answer. */
const lockTimeoutMs = 1_800

const lockRetryMs = 3

const maxDeferralMs = 20

/** Maximum number of deferred writes. After a crash their events are handled again. */
const maxDeferred = 64

interface Write {
  readonly isHandlers: boolean
  run(): void
  committed(): void
  failed(error: unknown): void
  /** When it gives up on the lock (`performance.now()`, ms). Set at the first busy error. */
  deadline: number | undefined
}

export interface CommitReports {
  /** Called after a failed commit, whose writes may be in the file anyway. */
  onFailed(): void
  /** Called once, when another process has taken over the file or it is gone. From then on every write is rejected. */
  onLost(error: WebhookError): void
}

/**
 * Group commit: the writes of one event-loop turn share a transaction, and so one fsync. Deliveries arriving during the
 * fsync form the next batch. A deferrable write joins the next transaction, or gets one after {@link maxDeferralMs}.
 * While another connection holds the lock, writes wait outside SQLite, whose own busy handler would block the event
 * loop.
 */
export class GroupCommit implements Commits {
  readonly #file: OwnedFile
  readonly #reports: CommitReports
  #writes: Write[] = []
  #isScheduled = false
  #deferred = 0
  #deferredTimer: Timer | undefined
  #isClosing = false
  #rejection: WebhookError | undefined

  constructor(file: OwnedFile, reports: CommitReports) {
    this.#file = file
    this.#reports = reports
  }

  get deferred(): number {
    return this.#deferred
  }

  add<T>(write: () => T, { isHandlers = false, canWait = false } = {}): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#rejection !== undefined) return reject(this.#rejection)
      let result: T
      this.#writes.push({
        isHandlers,
        run() {
          result = write()
        },
        committed: () => resolve(result),
        failed: reject,
        deadline: undefined,
      })
      if (canWait) this.#scheduleDeferred()
      else this.#schedule()
    })
  }

  /** Stores an event at the end of the next transaction. */
  accept(written: WrittenEvent): Promise<number | undefined> {
    return this.add(() => this.#file.events.accept(written))
  }

  #scheduleDeferred(): void {
    if (++this.#deferred === maxDeferred || this.#isClosing) return this.#schedule()
    if (!this.#isScheduled) this.#deferredTimer ??= setTimeout(() => this.#flush(), maxDeferralMs)
  }

  #schedule(delayMs?: number): void {
    if (this.#isScheduled) return
    const flush = () => {
      this.#isScheduled = false
      this.#flush()
    }
    if (delayMs === undefined) setImmediate(flush)
    else setTimeout(flush, delayMs)
    this.#isScheduled = true
  }

  #flush(): void {
    const writes = this.#writes
    this.#writes = []
    this.#deferred = 0
    clearTimeout(this.#deferredTimer)
    this.#deferredTimer = undefined
    this.#commit(writes)
  }

  #commit(writes: readonly Write[]): void {
    if (writes.length === 0) return
    const { database, owner } = this.#file
    try {
      inTransaction(database, () => {
        owner.check()
        for (const write of writes) write.run()
      })
    } catch (error) {
      return this.#failed(writes, error)
    }
    for (const write of writes) write.committed()
  }

  #failed(writes: readonly Write[], error: unknown): void {
    if (isBusy(error)) return this.#wait(writes, error)
    const { isLost } = this.#file.owner
    if (isLost) this.#lose(error as WebhookError)
    else this.#reports.onFailed()
    const handlerWrites = writes.filter(({ isHandlers }) => isHandlers)
    if (!isLost && writes.length > 1 && handlerWrites.length > 0) return this.#commitApart(writes, handlerWrites)
    for (const write of writes) write.failed(error)
  }

  /** Commits handlers' writes one by one, because one can fail the commit, with a foreign key for example. */
  #commitApart(writes: readonly Write[], handlerWrites: readonly Write[]): void {
    this.#commit(writes.filter(({ isHandlers }) => !isHandlers))
    for (const write of handlerWrites) this.#commit([write])
  }

  #wait(writes: readonly Write[], error: unknown): void {
    const now = performance.now()
    const remaining: Write[] = []
    for (const write of writes) {
      write.deadline ??= now + lockTimeoutMs
      if (write.deadline > now) remaining.push(write)
      else write.failed(isSnapshotLock(error) ? this.#openQueryError(error) : error)
    }
    this.#writes = [...this.#writes, ...remaining]
    if (remaining.length > 0) this.#schedule(lockRetryMs)
  }

  /** Not another process's lock: an open query of this connection pins an old snapshot. */
  #openQueryError(cause: unknown): WebhookError {
    const fix = 'Close its iterator, or read with all()'
    const message = `an open query on this connection to ${this.#file.path} blocks every write. ${fix}`
    return new WebhookError('unavailable', message, { cause })
  }

  #lose(error: WebhookError): void {
    if (this.#rejection === error) return
    this.#rejection = error
    this.#reports.onLost(error)
  }

  /** Commits what it can at once, then rejects the rest and all later writes. */
  giveUp(error: WebhookError): void {
    this.#flush()
    this.#rejection = error
    for (const write of this.#writes.splice(0)) write.failed(error)
  }

  isOwner(): boolean {
    try {
      if (this.#file.owner.confirm()) return true
    } catch {
      return true
    }
    this.#lose(this.#file.owner.lost)
    return false
  }

  /** Resolves once every write is committed or rejected. From now on nothing is deferred. */
  async settle(): Promise<void> {
    this.#isClosing = true
    if (this.#writes.length > 0) this.#schedule()
    while (this.#writes.length > 0) await new Promise((resolve) => setTimeout(resolve, lockRetryMs))
  }

  async close(): Promise<void> {
    this.#rejection ??= new WebhookError('closing', 'the inbox is closed')
    await this.settle()
  }
}
