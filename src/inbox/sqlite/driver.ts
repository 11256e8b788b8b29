import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { WebhookError } from '../../errors.ts'
import type { SqliteDatabase } from '../sqlite-tables/database.ts'

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
