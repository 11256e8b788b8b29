import { WebhookError } from '../../errors.ts'
import { later, type Timer } from '../../internal/timers.ts'
import type { Counter } from './accepting.ts'
import { inTransaction, isBusy, isSnapshotLock } from './connection.ts'
import type { CommitOptions } from './database.ts'
import type { OwnedFile } from './file.ts'

/** Longest wait for another connection's lock (ms). A sender waits 3 s for its answer. */
const lockTimeoutMs = 1_800

const lockRetryMs = 3

/** Longest wait of a write that can wait for another one's commit (ms). */
const maxDeferralMs = 20

interface Write extends CommitOptions {
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
 * Group commit: the writes of one event-loop turn share a transaction, and so one fsync; light ones alone need none.
 * Deliveries arriving during the fsync form the next batch. While another connection holds the lock, writes wait outside
 * SQLite, whose own busy handler would block the event loop.
 */
export class GroupCommit {
  readonly #file: OwnedFile
  readonly #counter: Counter
  readonly #reports: CommitReports
  #writes: Write[] = []
  #isScheduled = false
  /** Set while a write waits for another one. */
  #deferral: Timer | undefined
  #rejection: WebhookError | undefined
  /** The write that runs. */
  #current: Write | undefined

  constructor(file: OwnedFile, counter: Counter, reports: CommitReports) {
    this.#file = file
    this.#counter = counter
    this.#reports = reports
  }

  /**
   * Resolves with the result of `write` after the commit. Rejects if it was rolled back.
   * @param write may run more than once; all runs but the last are rolled back
   */
  add<T>(write: () => T, options?: CommitOptions): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#rejection !== undefined) return reject(this.#rejection)
      let result: T
      const run = () => {
        result = write()
      }
      this.#writes.push({ ...options, run, committed: () => resolve(result), failed: reject, deadline: undefined })
      if (options?.canWait) this.#defer()
      else this.#schedule()
    })
  }

  /** Waits up to 20 ms for another write's commit. A second deferred write ends the wait: the engine may need the first. */
  #defer(): void {
    if (this.#deferral !== undefined) return this.#schedule()
    if (!this.#isScheduled) this.#deferral = setTimeout(() => this.#flush(), maxDeferralMs)
  }

  #schedule(delayMs?: number): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    const flush = () => {
      this.#isScheduled = false
      this.#flush()
    }
    if (delayMs === undefined) later(flush)
    else setTimeout(flush, delayMs)
  }

  #flush(): void {
    clearTimeout(this.#deferral)
    this.#deferral = undefined
    const writes = this.#writes
    this.#writes = []
    this.#commit(writes)
  }

  #commit(writes: readonly Write[]): void {
    if (writes.length === 0) return
    try {
      if (writes.every(({ isLight }) => isLight === true)) this.#file.withoutSync(() => this.#run(writes))
      else this.#run(writes)
    } catch (error) {
      return this.#failed(writes, error)
    }
    for (const write of writes) write.committed()
  }

  #run(writes: readonly Write[]): void {
    const { database, lease } = this.#file
    inTransaction(database, () => {
      lease.check()
      this.#counter.keep(() => {
        for (const write of writes) {
          this.#current = write
          write.run()
        }
        this.#current = undefined
      })
    })
  }

  #failed(writes: readonly Write[], error: unknown): void {
    const current = this.#current
    this.#current = undefined
    if (isBusy(error)) return this.#wait(writes, error)
    const lost = this.#file.lease.explain(error)
    if (lost !== undefined) this.#lose(lost)
    else this.#reports.onFailed()
    const apart = current === undefined ? writes.filter(({ isHandlers }) => isHandlers) : [current]
    if (lost === undefined && writes.length > 1 && apart.length > 0) return this.#commitApart(writes, apart)
    for (const write of writes) write.failed(lost ?? error)
  }

  /**
   * Commits one by one what may have failed the others: the write that failed, or handlers' writes, which can fail the
   * commit, with a foreign key for example.
   */
  #commitApart(writes: readonly Write[], apart: readonly Write[]): void {
    this.#commit(writes.filter((write) => !apart.includes(write)))
    for (const write of apart) this.#commit([write])
  }

  #wait(writes: readonly Write[], error: unknown): void {
    const now = performance.now()
    const remaining: Write[] = []
    for (const write of writes) {
      write.deadline ??= now + lockTimeoutMs
      if (write.deadline > now) remaining.push(write)
      else write.failed(isSnapshotLock(error) ? this.#openQueryError(error) : error)
    }
    this.#writes = [...remaining, ...this.#writes]
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
  rejectRest(error: WebhookError): void {
    this.#flush()
    this.#rejection = error
    for (const write of this.#writes.splice(0)) write.failed(error)
  }

  isOwner(): boolean {
    const lost = this.#file.lease.findLoss()
    if (lost !== undefined) this.#lose(lost)
    return lost === undefined
  }

  /** Rejects later writes. Resolves once every earlier one is committed or rejected. */
  async close(): Promise<void> {
    this.#rejection ??= new WebhookError('closing', 'the inbox is closed')
    while (this.#writes.length > 0) await new Promise((resolve) => setTimeout(resolve, lockRetryMs))
  }
}
