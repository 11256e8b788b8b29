import { resolve } from 'node:path'
import { WebhookError } from '../../errors.ts'
import type { SqliteDatabase } from './connection.ts'

/**
 * Opens a file with node:sqlite, or libsql where Node has none.
 * @throws WebhookError `invalid_option` if there is neither
 */
export function openDatabase(path: string): SqliteDatabase {
  const Database = databaseClass()
  // Absolute, because drivers take some relative names for URLs or in-memory databases.
  return new Database(resolve(path))
}

type SqliteDatabaseClass = new (path: string) => SqliteDatabase

function databaseClass(): SqliteDatabaseClass {
  // Built in since 22.13.
  const builtIn = withoutWarning(() => process.getBuiltinModule('node:sqlite')) as
    | { DatabaseSync: SqliteDatabaseClass }
    | undefined
  if (builtIn !== undefined) return builtIn.DatabaseSync
  try {
    return loadLibsql()
  } catch (cause) {
    const fix = 'install libsql, run Node 22.13 or later, or pass a better-sqlite3 database'
    throw new WebhookError('invalid_option', `the inbox needs SQLite: ${fix}`, { cause })
  }
}

/** Hides the "experimental feature" warning of Node 22's node:sqlite, and no other: the inbox is tested on it. */
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

// Not imported: webpack follows an imported createRequire, and would parse all files of libsql.
const { createRequire } = process.getBuiltinModule('node:module')

/**
 * Loads libsql from where this module is installed. A bundle is elsewhere, and as CommonJS it has no `import.meta.url`:
 * then from beside the program, or from the working directory.
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
