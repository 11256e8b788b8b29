import type { SqliteDatabase } from './database.ts'

/** The version of the tables. It rises with every change that is incompatible with earlier versions of this package. */
const schemaVersion = 1

// Keys are kept much longer than their events, so they have a table of their own, as hashes. The events' table has only
// unfinished events, so it stays small, and its pages are used again. `starts` counts crashes: files of earlier
// versions have that name. `id` is the order of acceptance, and the same in all tables.
const schema = `
  CREATE TABLE IF NOT EXISTS inbox_schema (version INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS inbox_key (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    accepted_at INTEGER NOT NULL,
    media INTEGER
  );
  CREATE TABLE IF NOT EXISTS inbox_event (
    id INTEGER PRIMARY KEY,
    event TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    completed TEXT NOT NULL DEFAULT '[]',
    due_at INTEGER NOT NULL DEFAULT 0,
    starts INTEGER NOT NULL DEFAULT 0,
    delay_ms INTEGER,
    trace TEXT,
    failed TEXT
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

/** Columns that earlier releases did not have. Those releases also work with them. */
const laterColumns = {
  inbox_event: { delay_ms: 'INTEGER', trace: 'TEXT', failed: 'TEXT' },
  inbox_key: { media: 'INTEGER' },
}

/**
 * The events of a media item are looked up in blocks of 4,096 ids each. In one index of all media items, each event
 * would change a page of its own. The events of a block share a few pages, and so do the events of a commit.
 */
export const idsPerBlock = 4_096

/** The number of the block of an id, in SQL. */
export const blockOfId = 'id >> 12'

export const blockOf = (id: number): number => Math.floor(id / idsPerBlock)

// Earlier releases did not have the index, the outcome of handled events, the retries that another process has
// requested, the numbers of each minute, the expectations, and the pauses. Handled events have a table of their own, and it
// grows only at its end. If the row of a key grew instead, it would move others: this took 1.5 µs more CPU for each event,
// of 18 µs in SQL. Handled events are forgotten with their keys, even if an earlier release removes the keys. One statement
// from outside, with a trigger, takes half of the time of two. `watch` is a hash of a rule and a media item.
const laterTables = `
  CREATE INDEX IF NOT EXISTS inbox_key_media ON inbox_key (${blockOfId}, media) WHERE media IS NOT NULL;
  CREATE TABLE IF NOT EXISTS inbox_handled (id INTEGER PRIMARY KEY, record TEXT NOT NULL);
  CREATE TRIGGER IF NOT EXISTS inbox_handled_event AFTER INSERT ON inbox_handled BEGIN
    DELETE FROM inbox_event WHERE id = new.id;
  END;
  CREATE TRIGGER IF NOT EXISTS inbox_handled_key AFTER DELETE ON inbox_key BEGIN
    DELETE FROM inbox_handled WHERE id = old.id;
  END;
  CREATE TABLE IF NOT EXISTS inbox_retry (id INTEGER PRIMARY KEY);
  CREATE TABLE IF NOT EXISTS inbox_activity (
    minute INTEGER,
    process TEXT,
    numbers TEXT NOT NULL,
    PRIMARY KEY (minute, process)
  ) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS inbox_expectation (
    id INTEGER PRIMARY KEY,
    watch TEXT NOT NULL,
    rule TEXT NOT NULL,
    began_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    hash TEXT NOT NULL,
    media INTEGER NOT NULL,
    event TEXT NOT NULL,
    trace TEXT
  );
  CREATE INDEX IF NOT EXISTS inbox_expectation_watch ON inbox_expectation (watch, began_at);
  CREATE INDEX IF NOT EXISTS inbox_expectation_due ON inbox_expectation (due_at);
  CREATE TABLE IF NOT EXISTS inbox_end (
    watch TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    accepted_at INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS inbox_end_accepted ON inbox_end (accepted_at);
  CREATE TABLE IF NOT EXISTS inbox_pause (
    handler TEXT PRIMARY KEY,
    since INTEGER NOT NULL,
    paused_by TEXT
  ) WITHOUT ROWID;
`

/**
 * The row that has the version. It shows that the keys of all events have their media item, so they need no check.
 * Earlier releases leave the media item out, and write the version to row 1 whenever they open the file.
 */
const rowOfVersion = 2

/** Makes the tables if there are none. Part of a transaction. */
export function makeTables(database: SqliteDatabase): void {
  database.exec(schema)
  checkVersion(database)
  upgrade(database)
  if (database.prepare(`SELECT 1 FROM inbox_schema WHERE rowid = ${rowOfVersion}`).all().length === 0)
    addMedia(database)
  // It is written every time, so that a read-only file is an error now and not at the first event.
  database.exec('DELETE FROM inbox_schema')
  database.exec(`INSERT INTO inbox_schema (rowid, version) VALUES (${rowOfVersion}, ${schemaVersion})`)
}

/** Adds the new tables and columns to those of earlier releases. */
export function upgrade(database: SqliteDatabase): void {
  for (const [table, columns] of Object.entries(laterColumns)) {
    const present = database.prepare(`PRAGMA table_info(${table})`).all() as { name: string }[]
    for (const [column, type] of Object.entries(columns))
      if (!present.some(({ name }) => name === column)) database.exec(`ALTER TABLE ${table} ADD ${column} ${type}`)
  }
  database.exec(laterTables)
}

/** Adds the media item to the keys of an earlier release's unfinished events. */
function addMedia(database: SqliteDatabase): void {
  const without = database.prepare(`
    SELECT k.id, e.event, NULL AS dead_letter
    FROM inbox_event e CROSS JOIN inbox_key k ON k.id = e.id WHERE k.media IS NULL
    UNION ALL
    SELECT k.id, NULL, d.dead_letter
    FROM inbox_dead_letter d CROSS JOIN inbox_key k ON k.id = d.event_id WHERE k.media IS NULL`)
  const add = database.prepare('UPDATE inbox_key SET media = ? WHERE id = ?')
  for (const { id, event, dead_letter } of without.all() as { id: number; event: string; dead_letter: string }[]) {
    const { mediaId } = event === null ? JSON.parse(dead_letter).event : JSON.parse(event)
    add.run(hashMedia(mediaId), id)
  }
}

/** Throws when a newer version made the tables, or when there are no tables. */
export function checkVersion(database: SqliteDatabase): void {
  const tables = database.prepare("SELECT name FROM sqlite_schema WHERE name = 'inbox_schema'").all()
  if (tables.length === 0) throw new Error('it is not the file of an inbox')
  const row = database.prepare('SELECT max(version) AS version FROM inbox_schema').get() as { version: number | null }
  if ((row.version ?? 0) > schemaVersion) throw new Error('a newer version of media-webhooks made it')
}

/**
 * Hashes a media item id to a number, for an index that is smaller than one of texts. Two ids can have the same number,
 * so a search also compares the ids. The hash is FNV-1a, since other hashes are only asynchronous on Workers.
 */
export function hashMedia(mediaId: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < mediaId.length; i++) hash = Math.imul(hash ^ mediaId.charCodeAt(i), 0x01000193)
  return hash >>> 0
}
