import type { SqliteDatabase } from './database.ts'

/** Keys per clean-up: about a millisecond, which deliveries may have to wait. */
export const keysPerCleanUp = 250

/**
 * `OR FAIL` and `OR IGNORE` spare SQLite its statement journal, a copy of every changed page. The journal isn't needed,
 * because an error rolls back the whole transaction.
 */
const inserts = {
  key: 'INSERT OR IGNORE INTO inbox_key (hash, accepted_at, media) VALUES (?, ?, ?)',
  event: 'INSERT OR FAIL INTO inbox_event (id, event, received_at, trace) VALUES (?, ?, ?, ?)',
  // A trigger deletes the event. The record already exists only if its commit succeeded but was reported as failed.
  // REPLACE, not IGNORE: ids start over once all keys are forgotten, and a stale record under the same id would
  // suppress the trigger.
  handled: 'INSERT OR REPLACE INTO inbox_handled (id, record) VALUES (?, ?)',
}

export const prepareEvents = (database: SqliteDatabase) => ({
  remember: database.prepare(inserts.key),
  insert: database.prepare(inserts.event),
  handled: database.prepare(inserts.handled),
  remove: database.prepare('DELETE FROM inbox_event WHERE id = ?'),
  delay: database.prepare(
    `UPDATE inbox_event SET due_at = ?, delayed_at = ?, attempts = ?, completed = ?,
       failed = coalesce(?, failed), crashes = crashes * ?
     WHERE id = ?`,
  ),
  replayed: database.prepare('UPDATE inbox_event SET due_at = ?, delayed_at = ? WHERE id = ?'),
  complete: database.prepare('UPDATE inbox_event SET completed = ? WHERE id = ?'),
  completed: database.prepare('SELECT completed FROM inbox_event WHERE id = ?'),
})

export const prepareClaims = (database: SqliteDatabase) => ({
  waiting: database.prepare('SELECT * FROM inbox_event WHERE id > ? AND due_at IS NULL ORDER BY id LIMIT ?'),
  waitingIds: database.prepare('SELECT id FROM inbox_event WHERE id > ? AND due_at IS NULL ORDER BY id LIMIT ?'),
  get: database.prepare('SELECT * FROM inbox_event WHERE id = ?'),
  due: database.prepare('SELECT id FROM inbox_event WHERE due_at <= ? ORDER BY due_at, id LIMIT ?'),
  clearDue: database.prepare('UPDATE inbox_event SET since = due_at, due_at = NULL, delayed_at = NULL WHERE id = ?'),
  nextDue: database.prepare('SELECT min(due_at) AS next FROM inbox_event WHERE due_at IS NOT NULL'),
  lastWaiting: database.prepare('SELECT max(id) AS last FROM inbox_event WHERE due_at IS NULL'),
  inherited: database.prepare('SELECT id FROM inbox_event WHERE id <= ? AND due_at IS NULL ORDER BY id LIMIT ?'),
  withMedia: database.prepare(
    `SELECT id, media, crashes FROM inbox_event e JOIN inbox_key k USING (id)
     WHERE id > ? AND due_at IS NULL ORDER BY id LIMIT ?`,
  ),
  suspects: database.prepare(
    `SELECT id, media FROM inbox_event e JOIN inbox_key k USING (id)
     WHERE crashes > 0 ORDER BY crashes, id`,
  ),
  ids: database.prepare('SELECT id FROM inbox_event WHERE id > ? ORDER BY id LIMIT ?'),
  retries: database.prepare('SELECT count(*) AS retrying, min(due_at) AS next FROM inbox_event WHERE due_at > ?'),
})

export const prepareExpectations = (database: SqliteDatabase) => ({
  end: database.prepare('DELETE FROM inbox_expectation WHERE watch = ? AND began_at <= ?'),
  remember: database.prepare(
    `INSERT INTO inbox_end (watch, at, accepted_at) VALUES (?, ?, ?)
     ON CONFLICT (watch) DO UPDATE SET at = max(at, excluded.at), accepted_at = excluded.accepted_at`,
  ),
  begin: database.prepare(
    `INSERT INTO inbox_expectation (watch, rule, began_at, due_at, hash, media, event, trace)
     SELECT ?, ?, ?, ?, ?, ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM inbox_end WHERE watch = ? AND at >= ?)`,
  ),
  next: database.prepare('SELECT min(due_at) AS next FROM inbox_expectation'),
  due: database.prepare('SELECT * FROM inbox_expectation WHERE due_at <= ? ORDER BY due_at, id LIMIT ?'),
  remove: database.prepare('DELETE FROM inbox_expectation WHERE id = ?'),
})

export const prepareOwner = (database: SqliteDatabase) => ({
  get: database.prepare('SELECT pid, running FROM inbox_owner'),
  add: database.prepare('INSERT INTO inbox_owner (token, pid, running) VALUES (?, ?, ?)'),
  removeAll: database.prepare('DELETE FROM inbox_owner'),
  remove: database.prepare('DELETE FROM inbox_owner WHERE token = ?'),
  owns: database.prepare('SELECT 1 AS owns FROM inbox_owner WHERE token = ?'),
  record: database.prepare('UPDATE inbox_owner SET running = ? WHERE token = ?'),
  // Of the listed events, only the first per media item can have been running: a lane runs one at a time. An event's
  // first crash came before there was a list, so it is counted along with the second.
  countCrash: database.prepare(
    `UPDATE inbox_event SET crashes = CASE crashes WHEN 0 THEN 2 ELSE crashes + 1 END
     WHERE id IN (
       SELECT min(e.id) FROM inbox_owner, json_each(running) JOIN inbox_event e ON e.id = value JOIN inbox_key k ON k.id = e.id
       WHERE e.due_at IS NULL GROUP BY k.media
     )`,
  ),
  hasWork: database.prepare('SELECT 1 FROM inbox_event WHERE due_at IS NULL OR due_at <= ? LIMIT 1'),
})

/** End of a handled event (ms since the epoch), in SQL. Null for a damaged record, which expires with its key. */
const endedAt = "CASE WHEN json_valid(record) THEN json_extract(record, '$[3]') + json_extract(record, '$[4]') END"

export const prepareCleanUp = (database: SqliteDatabase) => ({
  // A clock that was ahead would otherwise delay its events by as much.
  correctDelays: database.prepare(
    `UPDATE inbox_event SET due_at = ? + due_at - delayed_at, delayed_at = ?
     WHERE due_at IS NOT NULL AND delayed_at > ?`,
  ),
  lastOfSlice: database.prepare(
    `SELECT id, accepted_at FROM inbox_key WHERE id > ? ORDER BY id LIMIT 1 OFFSET ${keysPerCleanUp - 1}`,
  ),
  // Also deletes keys from the future, left by a clock that was ahead. A replay can end long after its acceptance; its
  // duplicates can still come for the full TTL.
  remove: database.prepare(
    `DELETE FROM inbox_key
     WHERE id > ? AND id <= ? AND accepted_at NOT BETWEEN ? AND ?
       AND NOT EXISTS (SELECT 1 FROM inbox_event WHERE inbox_event.id = inbox_key.id)
       AND NOT EXISTS (SELECT 1 FROM inbox_dead_letter WHERE event_id = inbox_key.id)
       AND NOT EXISTS (SELECT 1 FROM inbox_handled WHERE inbox_handled.id = inbox_key.id AND ${endedAt} BETWEEN ? AND ?)`,
  ),
  forgetEnds: database.prepare(
    `DELETE FROM inbox_end WHERE watch IN
       (SELECT watch FROM inbox_end WHERE accepted_at < ? OR accepted_at > ? LIMIT ${keysPerCleanUp})`,
  ),
})
