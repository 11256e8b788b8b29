import { WebhookError } from '../../errors.ts'
import { inTransaction, type SqliteDatabase } from './driver.ts'

interface Write {
  run(): void
  committed(): void
  failed(error: unknown): void
}

/**
 * Group commit: the writes of one turn of the event loop share a transaction, and so one wait for the disk. Deliveries
 * that arrive during that wait are together in the next transaction.
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
   * Resolves with the result of `write` once it is on disk. Rejects when it was undone.
   * @param write changes the database. It must not throw for reasons of its own: that would undo the others too
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

  /** Commits the writes that have been added. */
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

  /** Commits the writes that have been added, and rejects later ones. */
  close(): void {
    this.flush()
    this.#closed = true
  }
}
