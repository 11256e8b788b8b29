import { WebhookError } from '../../errors.ts'
import { inTransaction, type SqliteDatabase } from './driver.ts'

interface Write {
  run(): void
  committed(): void
  failed(error: unknown): void
}

/**
 * Group commit: the writes of one turn of the event loop share a transaction, and so its wait for the disk. While that
 * lasts deliveries queue up, and are together in the next.
 */
export class GroupCommit {
  readonly #database: SqliteDatabase
  readonly #onFailed: () => void
  #writes: Write[] = []
  #turn: NodeJS.Immediate | undefined
  #closed = false

  constructor(database: SqliteDatabase, onFailed: () => void) {
    this.#database = database
    this.#onFailed = onFailed
  }

  /**
   * Resolves with what a write returned once that is on disk. Rejects when it is not: the write was undone then.
   * @param write changes the database, and may not throw for reasons of its own: it would undo those it shares with
   */
  add<T>(write: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(new WebhookError('closing', 'the inbox is closed'))
      let result: T
      this.#writes.push({
        run() {
          result = write()
        },
        committed: () => resolve(result),
        failed: reject,
      })
      this.#turn ??= setImmediate(() => this.flush())
    })
  }

  /** Commits what has been added. */
  flush(): void {
    const writes = this.#writes
    this.#writes = []
    clearImmediate(this.#turn)
    this.#turn = undefined
    if (writes.length === 0) return
    try {
      inTransaction(this.#database, () => {
        for (const write of writes) write.run()
      })
    } catch (error) {
      this.#onFailed()
      for (const write of writes) write.failed(error)
      return
    }
    for (const write of writes) write.committed()
  }

  /** Commits what has been added, and refuses what comes after it. */
  close(): void {
    this.flush()
    this.#closed = true
  }
}
