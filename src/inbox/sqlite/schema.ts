import type { SqliteDatabase } from './driver.ts'

/** The version of the tables. It rises with every change that an earlier version of this package cannot work with. */
const schemaVersion = 1

// Keys outlive their events by far, so they have a table of their own, as hashes. The events' table stays as small as
// the number of events, and its pages are used again. `id` is the order of acceptance, and the same in both tables.
const schema = `
  CREATE TABLE IF NOT EXISTS inbox_schema (version INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS inbox_key (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    accepted_at INTEGER NOT NULL
  );
  CREATE TABLE IF NOT EXISTS inbox_event (
    id INTEGER PRIMARY KEY,
    event TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    completed TEXT NOT NULL DEFAULT '[]',
    due_at INTEGER NOT NULL DEFAULT 0,
    starts INTEGER NOT NULL DEFAULT 0,
    delay_ms INTEGER
  );
  CREATE TABLE IF NOT EXISTS inbox_owner (
    token TEXT NOT NULL,
    pid INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    alone INTEGER
  );
  CREATE TABLE IF NOT EXISTS inbox_dead_letter (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    event_id INTEGER UNIQUE,
    replay INTEGER NOT NULL DEFAULT 0,
    dead_letter TEXT NOT NULL,
    body BLOB
  );
`

/** Makes the tables if there are none. Part of a transaction. */
export function makeTables(database: SqliteDatabase): void {
  database.exec(schema)
  checkVersion(database)
  addDelay(database)
  // Written every time, so that a read-only file is an error now and not at the first event.
  database.exec(`DELETE FROM inbox_schema; INSERT INTO inbox_schema VALUES (${schemaVersion})`)
}

/** Adds the column that the first releases did not have. They work with it too. */
export function addDelay(database: SqliteDatabase): void {
  const columns = database.prepare('PRAGMA table_info(inbox_event)').all() as { name: string }[]
  if (!columns.some(({ name }) => name === 'delay_ms')) database.exec('ALTER TABLE inbox_event ADD delay_ms INTEGER')
}

/** Throws when a newer version made the tables, or when there are no tables. */
export function checkVersion(database: SqliteDatabase): void {
  const tables = database.prepare("SELECT name FROM sqlite_schema WHERE name = 'inbox_schema'").all()
  if (tables.length === 0) throw new Error('it is not the file of an inbox')
  const row = database.prepare('SELECT max(version) AS version FROM inbox_schema').get() as { version: number | null }
  if ((row.version ?? 0) > schemaVersion) throw new Error('a newer version of media-webhooks made it')
}
