import type { SqliteDatabase } from './database.ts'

/** Incremented with every incompatible change. */
const schemaVersion = 1

/**
 * Ids per block. A media item's events are looked up block by block: in one index over all media items, every insert
 * would dirty another page, while a block's events share a few.
 */
export const idsPerBlock = 4_096

export const blockOfId = 'id >> 12'

export const blockOf = (id: number): number => Math.floor(id / idsPerBlock)

// Keys outlive their events, so they have their own table, hashed, and the event table stays small. Handled events go
// to an append-only table: an outcome in the key's row would move its neighbours. A trigger deletes a handled event, at
// half the cost of a second statement.
//
// `id` is the order of acceptance in every table. `due_at` is null unless the event waits for a retry. `delayed_at` is
// when that was set: in the future if the clock was ahead. `since` is the time of the last retry. `owner.running` lists
// possibly running events (claims.ts). `watch` is a hash of rule and media item.
const schema = `
  CREATE TABLE IF NOT EXISTS inbox_key (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    accepted_at INTEGER NOT NULL,
    media INTEGER NOT NULL
  );
  CREATE INDEX IF NOT EXISTS inbox_key_media ON inbox_key (${blockOfId}, media);
  CREATE TABLE IF NOT EXISTS inbox_event (
    id INTEGER PRIMARY KEY,
    event TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    since INTEGER,
    due_at INTEGER,
    delayed_at INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    completed TEXT NOT NULL DEFAULT '[]',
    crashes INTEGER NOT NULL DEFAULT 0,
    trace TEXT,
    failed TEXT
  );
  CREATE INDEX IF NOT EXISTS inbox_event_due ON inbox_event (due_at, id) WHERE due_at IS NOT NULL;
  CREATE INDEX IF NOT EXISTS inbox_event_delayed ON inbox_event (delayed_at) WHERE due_at IS NOT NULL;
  CREATE INDEX IF NOT EXISTS inbox_event_suspect ON inbox_event (crashes, id) WHERE crashes > 0;
  CREATE TABLE IF NOT EXISTS inbox_owner (
    token TEXT NOT NULL,
    pid INTEGER NOT NULL,
    running TEXT
  );
  CREATE TABLE IF NOT EXISTS inbox_dead_letter (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    event_id INTEGER UNIQUE,
    replay INTEGER NOT NULL DEFAULT 0,
    dead_letter TEXT NOT NULL,
    body BLOB
  );
  CREATE TABLE IF NOT EXISTS inbox_handled (id INTEGER PRIMARY KEY, record TEXT NOT NULL);
  CREATE TRIGGER IF NOT EXISTS inbox_handled_event AFTER INSERT ON inbox_handled BEGIN
    DELETE FROM inbox_event WHERE id = new.id;
  END;
  CREATE TRIGGER IF NOT EXISTS inbox_handled_key AFTER DELETE ON inbox_key BEGIN
    DELETE FROM inbox_handled WHERE id = old.id;
  END;
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
  CREATE TABLE IF NOT EXISTS inbox_operation (id INTEGER PRIMARY KEY, operation TEXT NOT NULL, events TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS inbox_pause (
    handler TEXT PRIMARY KEY,
    since INTEGER NOT NULL,
    paused_by TEXT
  ) WITHOUT ROWID;
`

/** Creates missing tables. Call it in a transaction. */
export function makeTables(database: SqliteDatabase): void {
  database.exec('CREATE TABLE IF NOT EXISTS inbox_schema (version INTEGER NOT NULL)')
  // First: this version's statements may not fit a newer schema.
  checkVersion(database)
  database.exec(schema)
  // Every time: a read-only file should fail now, not at the first event.
  database.exec(`INSERT OR REPLACE INTO inbox_schema (rowid, version) VALUES (1, ${schemaVersion})`)
}

/** Throws if there are no tables, or a newer version made them. */
export function checkVersion(database: SqliteDatabase): void {
  const tables = database.prepare("SELECT name FROM sqlite_schema WHERE name = 'inbox_schema'").all()
  if (tables.length === 0) throw new Error('it is not the file of an inbox')
  const row = database.prepare('SELECT max(version) AS version FROM inbox_schema').get() as { version: number | null }
  if ((row.version ?? 0) > schemaVersion) throw new Error('a newer version of media-webhooks made it; upgrade this one')
}

/**
 * Hashes a media id to 32 bits, for a smaller index. Hashes can collide, so searches compare ids too. FNV-1a, because
 * Workers offer the others only asynchronously.
 */
export function hashMedia(mediaId: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < mediaId.length; i++) hash = Math.imul(hash ^ mediaId.charCodeAt(i), 0x01000193)
  return hash >>> 0
}
