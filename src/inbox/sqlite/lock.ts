import { basename } from 'node:path'
import { inTransaction, type SqliteDatabase } from '../sqlite-tables/database.ts'
import { isBusy } from '../sqlite-tables/sqlite-errors.ts'

/**
 * Locks a file for this process, until {@link unlock} or the end of the connection. It is a lock of the operating system
 * on a second file beside it: it ends with the process, however that ends, and other processes can still read and replay.
 */
export function lock(database: SqliteDatabase, path: string): void {
  try {
    database.prepare('ATTACH ? AS inbox_lock').run(`${path}-lock`)
    database.exec('PRAGMA inbox_lock.journal_mode = MEMORY')
    // In this mode a lock outlasts its transaction.
    database.exec('PRAGMA inbox_lock.locking_mode = EXCLUSIVE')
    // A file that cannot be written is only locked for reading, without an error, unless something is written.
    inTransaction(database, () => database.exec('PRAGMA inbox_lock.user_version = 1'), 'EXCLUSIVE')
  } catch (error) {
    if (isBusy(error)) throw new Error('another process, or another inbox of this one, has it open', { cause: error })
    throw new Error(`it, or the ${basename(path)}-lock beside it, cannot be locked: ${(error as Error).message}`, {
      cause: error,
    })
  }
}

export function unlock(database: SqliteDatabase): void {
  const attached = database.prepare('PRAGMA database_list').all() as { name: string }[]
  if (attached.some(({ name }) => name === 'inbox_lock')) database.exec('DETACH inbox_lock')
}
