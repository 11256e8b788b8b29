import { basename } from 'node:path'
import { WebhookError } from '../../errors.ts'
import type { SqliteDatabase } from './connection.ts'
import { tableNames } from './schema.ts'

/** In the header of the lock file: tables were made. It outlasts what drops tables, and a crash before they were made. */
const madeTables = 0x6d_77_68_6b

const pragma = 'PRAGMA inbox_lock.application_id'

/** Remembers that the file has tables. Call it with the lock, after they are committed. */
export const rememberTables = (database: SqliteDatabase): unknown => database.exec(`${pragma} = ${madeTables}`)

const hadTables = (database: SqliteDatabase): boolean =>
  (database.prepare(pragma).get() as { application_id: number }).application_id === madeTables

/**
 * Checks that no table was dropped. A file in which nothing else is has not lost its tables: it is new, or was deleted.
 * Call it with the lock.
 * @throws WebhookError `unavailable`
 */
export function checkTables(database: SqliteDatabase, path: string): void {
  const rows = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all() as { name: string }[]
  const names = rows.map(({ name }) => name)
  const missing = tableNames.filter((name) => !names.includes(name))
  const isNew = missing.length === tableNames.length && (names.length === 0 || !hadTables(database))
  if (missing.length > 0 && !isNew) throw lostTables(path)
}

/** True if an error says that a table of the inbox does not exist. */
export const saysTableLost = (error: unknown): boolean =>
  /no such table: (main\.)?inbox_/.test(`${(error as Error | undefined)?.message}`)

export function lostTables(path: string): WebhookError {
  const cause = 'tools that push a schema drop tables they do not know, as drizzle-kit push does'
  const fix = `give the inbox a file of its own, or exclude inbox_* there, and restore ${path} from a backup`
  const anew = `to begin with an empty inbox, drop what is left of them and delete ${basename(path)}-lock`
  const message = `tables of the inbox were dropped from ${path}, with the events in them: ${cause}. To keep events, ${fix}; ${anew}`
  return new WebhookError('unavailable', message)
}
