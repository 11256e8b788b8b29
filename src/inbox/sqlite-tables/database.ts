/**
 * A prepared statement, as node:sqlite and better-sqlite3 have it. Parameters are strings, numbers and bytes. Bytes are
 * never the only parameter: libsql takes a single object for named parameters.
 */
export interface SqliteStatement {
  /** Runs the statement and returns the number of rows that it changed. */
  run(...parameters: unknown[]): { changes: number | bigint; lastInsertRowid: number | bigint }
  /** Returns the first row, or `undefined`. */
  get(...parameters: unknown[]): unknown
  /** Returns every row. */
  all(...parameters: unknown[]): unknown[]
}

/** The part of a database's interface that the inbox uses. node:sqlite, libsql and better-sqlite3 have it. */
export interface SqliteDatabase {
  /** Runs SQL without parameters, also several statements. */
  exec(sql: string): unknown
  /** Prepares one statement. */
  prepare(sql: string): SqliteStatement
  /** Closes the database. */
  close(): unknown
}

/** Runs `run` in a transaction, and rolls it back if `run` throws. */
export function inTransaction<T>(database: SqliteDatabase, run: () => T, mode = 'IMMEDIATE'): T {
  database.exec(`BEGIN ${mode}`)
  try {
    const result = run()
    database.exec('COMMIT')
    return result
  } catch (error) {
    rollBack(database)
    throw error
  }
}

function rollBack(database: SqliteDatabase): void {
  try {
    database.exec('ROLLBACK')
  } catch {
    // SQLite may already have rolled back, for example because the disk is full.
  }
}

/** The result of a function, or its error. */
export type Outcome<T> = { readonly result: T } | { readonly error: unknown }

/**
 * Runs `run` behind a savepoint, as part of a transaction. If it throws, its writes are undone and its error is
 * returned. If the error has ended the whole transaction, it is thrown.
 */
export function inSavepoint<T>(database: SqliteDatabase, run: () => T): Outcome<T> {
  database.exec('SAVEPOINT inbox_handler')
  try {
    const result = run()
    database.exec('RELEASE inbox_handler')
    return { result }
  } catch (error) {
    try {
      database.exec('ROLLBACK TO inbox_handler; RELEASE inbox_handler')
    } catch {
      throw error
    }
    return { error }
  }
}

/** Returns `true` if an error means that another connection holds the lock. */
export const isBusy = (error: unknown): boolean => isKind(error, 'SQLITE_BUSY', 5)

/** Returns `true` if a connection cannot write because it still reads an old snapshot. */
export function isSnapshotLock(error: unknown): boolean {
  const { code, errcode } = Object(error)
  return code === 'SQLITE_BUSY_SNAPSHOT' || errcode === 517
}

/** Returns `true` if an error, or the one that it wraps, comes from the storage and not from the statement. */
export function isStorageFailure(error: unknown): boolean {
  const { cause, message } = Object(error)
  if (cause !== undefined && isStorageFailure(cause)) return true
  // Durable Objects have the code in the message.
  if (/SQLITE_(FULL|IOERR)/.test(message)) return true
  return isBusy(error) || isKind(error, 'SQLITE_FULL', 13) || isKind(error, 'SQLITE_IOERR', 10)
}

/** Returns `true` if an error means that a constraint of the schema was violated. */
export const isConstraint = (error: unknown): boolean => isKind(error, 'SQLITE_CONSTRAINT', 19)

function isKind(error: unknown, name: string, number: number): boolean {
  const { code, errcode }: { code?: unknown; errcode?: unknown } = Object(error)
  // The lower byte of a code is the kind of the error, and the others are the details.
  return String(code).startsWith(name) || (Number(errcode) & 0xff) === number
}
