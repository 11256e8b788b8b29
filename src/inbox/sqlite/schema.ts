import type { SqliteDatabase } from './connection.ts'

/** Incremented with every incompatible change. */
const schemaVersion = 1

// Tables and columns are those of `postgres/schema.ts`, without what only several processes need. Times are ms since the
// epoch, JSON and arrays of names are text, and null in `ready_at` stands for infinity. `media` is the lane's number, the id
// of its first event: lanes and events of a time then share pages, where hashes would write a page for each. Only
// expectations, which have no lane yet, keep the hash.
//
// `counter.next`: the next id. Rows' own numbers won't do: they start over in an empty table, below the lanes' positions.
// `counter.unfinished`: events that have neither ended nor died, written with them.
const schema = `
  CREATE TABLE IF NOT EXISTS inbox_event (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    media INTEGER,
    head TEXT,
    trace TEXT,
    replay INTEGER NOT NULL DEFAULT 0,
    received_at INTEGER NOT NULL, since INTEGER,
    owed TEXT, attempts INTEGER NOT NULL DEFAULT 0, completed TEXT NOT NULL DEFAULT '[]', failed TEXT,
    crashes INTEGER NOT NULL DEFAULT 0,
    late INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER, delayed_at INTEGER,
    ended_at INTEGER, died_at INTEGER,
    event TEXT, body BLOB
  );
  CREATE INDEX IF NOT EXISTS inbox_event_lane ON inbox_event (media, id);
  CREATE INDEX IF NOT EXISTS inbox_event_due ON inbox_event (media, due_at) WHERE due_at IS NOT NULL;
  CREATE INDEX IF NOT EXISTS inbox_event_died ON inbox_event (died_at, id) WHERE died_at IS NOT NULL;
  CREATE INDEX IF NOT EXISTS inbox_event_replay ON inbox_event (id) WHERE replay;
  CREATE TABLE IF NOT EXISTS inbox_lane (
    media INTEGER PRIMARY KEY,
    hash INTEGER NOT NULL UNIQUE,
    owner TEXT,
    turn INTEGER NOT NULL DEFAULT 0,
    ready_at INTEGER,
    position INTEGER NOT NULL DEFAULT 0,
    crashes INTEGER NOT NULL DEFAULT 0,
    latest_at INTEGER
  );
  CREATE INDEX IF NOT EXISTS inbox_lane_ready ON inbox_lane (ready_at)
    WHERE owner IS NULL AND ready_at IS NOT NULL AND crashes = 0;
  CREATE INDEX IF NOT EXISTS inbox_lane_marked ON inbox_lane (ready_at)
    WHERE owner IS NULL AND ready_at IS NOT NULL AND crashes > 0;
  CREATE INDEX IF NOT EXISTS inbox_lane_owner ON inbox_lane (owner) WHERE owner IS NOT NULL;
  CREATE TABLE IF NOT EXISTS inbox_counter (row INTEGER PRIMARY KEY, next INTEGER NOT NULL, unfinished INTEGER NOT NULL);
  INSERT OR IGNORE INTO inbox_counter VALUES (1, 1, 0);
  CREATE TABLE IF NOT EXISTS inbox_expectation (
    hash TEXT PRIMARY KEY,
    subject TEXT NOT NULL,
    media_hash INTEGER NOT NULL,
    rule TEXT NOT NULL,
    began_at INTEGER NOT NULL, due_at INTEGER NOT NULL,
    event TEXT NOT NULL, head TEXT NOT NULL, trace TEXT, owed TEXT NOT NULL,
    delayed_at INTEGER NOT NULL
  );
  CREATE INDEX IF NOT EXISTS inbox_expectation_subject ON inbox_expectation (subject, began_at);
  CREATE INDEX IF NOT EXISTS inbox_expectation_due ON inbox_expectation (due_at);
  CREATE TABLE IF NOT EXISTS inbox_expectation_end (
    subject TEXT PRIMARY KEY, ended_at INTEGER NOT NULL, accepted_at INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS inbox_expectation_end_accepted_at ON inbox_expectation_end (accepted_at);
  CREATE TABLE IF NOT EXISTS inbox_pause (handler TEXT PRIMARY KEY, since INTEGER NOT NULL, paused_by TEXT) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS inbox_operation (id INTEGER PRIMARY KEY, operation TEXT NOT NULL, events TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS inbox_activity (
    minute INTEGER, process TEXT, numbers TEXT NOT NULL, PRIMARY KEY (minute, process)
  ) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS inbox_owner (token TEXT NOT NULL, pid INTEGER NOT NULL);
`

const versions = 'CREATE TABLE IF NOT EXISTS inbox_schema (version INTEGER NOT NULL)'

export const tableNames = Array.from(
  `${versions}${schema}`.matchAll(/CREATE TABLE IF NOT EXISTS (\w+)/g),
  ([, name]) => `${name}`,
)

/** Creates missing tables. Call it in a transaction. */
export function makeTables(database: SqliteDatabase): void {
  // First: this version's statements may not fit a newer schema.
  checkVersion(database)
  database.exec(versions)
  database.exec(schema)
  // Every time: a read-only file should fail now, not at the first event.
  database.exec(`INSERT OR REPLACE INTO inbox_schema (rowid, version) VALUES (1, ${schemaVersion})`)
}

/** Throws if a newer version made the tables, or if there are none and there must be. */
export function checkVersion(database: SqliteDatabase, mustExist = false): void {
  const hasTables = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'inbox_schema'").all().length > 0
  if (!hasTables && mustExist) throw new Error('it is not the file of an inbox')
  if (!hasTables) return
  const row = database.prepare('SELECT max(version) AS version FROM inbox_schema').get() as { version: number | null }
  if ((row.version ?? 0) > schemaVersion) throw new Error('a newer version of media-webhooks made it; upgrade this one')
}
