import type { ObjectStorage } from '../../storage/durable-objects.ts'
import type { Commits } from '../sqlite-tables/storage.ts'

/**
 * Writes immediately: the runtime commits the writes of one turn together, and holds back answers and requests of the object
 * until they are on disk.
 */
export class ObjectCommits implements Commits {
  readonly #storage: ObjectStorage

  constructor(storage: ObjectStorage) {
    this.#storage = storage
  }

  /** Carries out a write in a transaction. */
  now<T>(write: () => T): T {
    return this.#storage.transactionSync(write)
  }

  async add<T>(write: () => T): Promise<T> {
    return this.now(write)
  }

  /** No other instance of the object runs. */
  isOwner(): boolean {
    return true
  }
}
