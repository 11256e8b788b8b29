/**
 * A prepared statement as in node:sqlite and better-sqlite3. Parameters are strings, numbers and bytes. Bytes are never
 * the only parameter, because libsql takes a single object for named parameters.
 */
export interface SqliteStatement {
  /** Runs the statement and returns the number of changed rows. */
  run(...parameters: unknown[]): { changes: number | bigint; lastInsertRowid: number | bigint }
  /** Returns the first row, or `undefined`. */
  get(...parameters: unknown[]): unknown
  /** Returns all rows. */
  all(...parameters: unknown[]): unknown[]
}

/** The database methods the inbox uses. node:sqlite, libsql and better-sqlite3 have them. */
export interface SqliteDatabase {
  /** Runs one or more SQL statements without parameters. */
  exec(sql: string): unknown
  /** Prepares one statement. */
  prepare(sql: string): SqliteStatement
  /** Closes the database. */
  close(): unknown
}

/** Prepares statements by name. */
export const prepareAll = <Name extends string>(database: SqliteDatabase, texts: Readonly<Record<Name, string>>) =>
  Object.fromEntries(Object.entries<string>(texts).map(([name, text]) => [name, database.prepare(text)])) as Readonly<
    Record<Name, SqliteStatement>
  >

/** Runs `run` in a transaction, and rolls back if it throws. */
export function inTransaction<T>(database: SqliteDatabase, run: () => T, mode = 'IMMEDIATE'): T {
  database.exec(`BEGIN ${mode}`)
  try {
    const result = run()
    database.exec('COMMIT')
    return result
  } catch (error) {
    try {
      database.exec('ROLLBACK')
    } catch {
      // SQLite may have rolled back already, on a full disk for example.
    }
    throw error
  }
}

export type Outcome<T> = { readonly result: T } | { readonly error: unknown }

/**
 * Runs `run` in a savepoint of the current transaction. If it throws, undoes its writes and returns the error. Rethrows
 * an error that ended the whole transaction.
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

/** True if another connection holds the lock. */
export const isBusy = (error: unknown): boolean => isKind(error, 'SQLITE_BUSY', 5)

/** True if the connection can't write because it still reads an old snapshot. */
export function isSnapshotLock(error: unknown): boolean {
  const { code, errcode } = Object(error)
  return code === 'SQLITE_BUSY_SNAPSHOT' || errcode === 517
}

/** True if the storage failed, not the statement. Looks at the causes too. */
export function isStorageFailure(error: unknown): boolean {
  const { cause, message } = Object(error)
  if (cause !== undefined && isStorageFailure(cause)) return true
  // Durable Objects have the code in the message.
  if (/SQLITE_(FULL|IOERR)/.test(message)) return true
  return isBusy(error) || isKind(error, 'SQLITE_FULL', 13) || isKind(error, 'SQLITE_IOERR', 10)
}

/** True for a constraint violation. */
export const isConstraint = (error: unknown): boolean => isKind(error, 'SQLITE_CONSTRAINT', 19)

function isKind(error: unknown, name: string, number: number): boolean {
  const { code, errcode }: { code?: unknown; errcode?: unknown } = Object(error)
  // The low byte is the kind of error, the rest is detail.
  return String(code).startsWith(name) || (Number(errcode) & 0xff) === number
}
