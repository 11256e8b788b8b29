import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { WebhookError } from '../../errors.ts'

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

/** The part of a database's interface that is used. node:sqlite, libsql and better-sqlite3 have it. */
export interface SqliteDatabase {
  /** Runs SQL without parameters, also several statements. */
  exec(sql: string): unknown
  /** Prepares one statement. */
  prepare(sql: string): SqliteStatement
  /** Closes the database. */
  close(): unknown
}

/**
 * Opens a file with node:sqlite if Node has it, otherwise with libsql.
 * @throws WebhookError `invalid_option` when there is neither
 */
export function openDatabase(path: string): SqliteDatabase {
  const Database = databaseClass()
  // Absolute, since drivers take some relative names for URLs or for a database in memory.
  return new Database(resolve(path))
}

type SqliteDatabaseClass = new (path: string) => SqliteDatabase

function databaseClass(): SqliteDatabaseClass {
  // Node has it from 22.13 on.
  const builtIn = withoutWarning(() => process.getBuiltinModule('node:sqlite')) as
    | { DatabaseSync: SqliteDatabaseClass }
    | undefined
  if (builtIn !== undefined) return builtIn.DatabaseSync
  try {
    return loadLibsql()
  } catch (cause) {
    const fix = 'install libsql, run Node 22.13 or later, or give a better-sqlite3 database'
    throw new WebhookError('invalid_option', `the inbox needs SQLite: ${fix}`, { cause })
  }
}

/**
 * Runs `load` without the warning that Node 22 writes to standard error when node:sqlite is first loaded: "SQLite is an
 * experimental feature". It does not concern the user, since the inbox is tested on that version. Other warnings pass.
 */
function withoutWarning<T>(load: () => T): T {
  const { emitWarning } = process
  process.emitWarning = (warning: string | Error, ...rest: unknown[]) => {
    if (rest[0] === 'ExperimentalWarning' && `${warning}`.startsWith('SQLite')) return
    Reflect.apply(emitWarning, process, [warning, ...rest])
  }
  try {
    return load()
  } finally {
    process.emitWarning = emitWarning
  }
}

/**
 * Loads libsql from where this module is installed. A bundle is elsewhere, and as CommonJS it has no `import.meta.url`: it
 * loads libsql from beside the program, or from the working directory.
 */
function loadLibsql(): SqliteDatabaseClass {
  const inWorkingDirectory = resolve('program.js')
  const from = [import.meta.url, process.argv[1], inWorkingDirectory].find(canResolveLibsql) ?? inWorkingDirectory
  return createRequire(from)('libsql')
}

function canResolveLibsql(from: string | undefined): boolean {
  try {
    return from !== undefined && createRequire(from).resolve('libsql') !== ''
  } catch {
    return false
  }
}

/** Runs `run` in a transaction, which is rolled back when it throws. */
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
    // SQLite has rolled back itself, as it does when the disk is full.
  }
}

/** The result of a function, or the error that it threw. */
export type Outcome<T> = { readonly result: T } | { readonly error: unknown }

/**
 * Runs `run` behind a savepoint, as part of a transaction. Its error undoes what it wrote, and is returned. It is thrown when
 * it has ended the whole transaction.
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
