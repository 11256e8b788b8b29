import { noRule } from '../sql/offered.ts'

// Every statement of the SQLite inbox on the hot path, as text to read and to EXPLAIN. The classes beside it put them
// together. What differs from Postgres: a transaction is the only writer, so nothing is locked, and each statement sees
// those before it. `?` that stand for a time are ms since the epoch.

/** The next id, and the number of unfinished events: read at the beginning of each transaction, written at its end. */
export const counter = {
  read: 'SELECT next, unfinished FROM inbox_counter',
  write: 'UPDATE inbox_counter SET next = ?, unfinished = ?',
}

export const accept = (isStrict: boolean) => ({
  /** Changes no row if the key is known. */
  insert: `INSERT INTO inbox_event (id, media, hash, event, head, trace, received_at, since, owed)
    VALUES (?, coalesce((SELECT media FROM inbox_lane WHERE hash = ?), ?), ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (hash) DO NOTHING`,
  known: 'SELECT 1 FROM inbox_event WHERE hash = ?',
  /** Only for new events: a duplicate wakes nobody. Strict: a lane that waits for a retry goes on waiting for it. */
  wake: `INSERT INTO inbox_lane (media, hash, ready_at) VALUES (?, ?, ?) ON CONFLICT (hash)
    DO UPDATE SET ready_at = excluded.ready_at WHERE ready_at IS NULL${isStrict ? '' : ' OR ready_at > excluded.ready_at'}`,
  /** An unreadable delivery. It has no lane until it is replayed. */
  keep: `INSERT INTO inbox_event (id, hash, head, body, received_at, died_at) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (hash) DO NOTHING`,
  removeUnreadable: 'DELETE FROM inbox_event WHERE hash = ? AND body IS NOT NULL',
  /** A dead letter is accepted again, at the end of its lane. */
  replay: `UPDATE inbox_event SET id = ?, died_at = NULL, attempts = 0, crashes = 0, since = ?
    WHERE id = ? AND died_at IS NOT NULL AND body IS NULL`,
  wakeAgain: `UPDATE inbox_lane SET ready_at = ? WHERE media = ? AND (ready_at IS NULL OR ${!isStrict} AND ready_at > ?)`,
})

export const expectations = {
  end: `INSERT INTO inbox_expectation_end (subject, ended_at, accepted_at) VALUES (?, ?, ?) ON CONFLICT (subject)
    DO UPDATE SET ended_at = max(ended_at, excluded.ended_at), accepted_at = excluded.accepted_at`,
  removeEnded: 'DELETE FROM inbox_expectation WHERE subject = ? AND began_at <= ?',
  /** Unless an end is known, which may have been accepted before it. */
  begin: `INSERT INTO inbox_expectation
      (hash, subject, media_hash, rule, began_at, due_at, event, head, trace, owed, delayed_at)
    SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
    WHERE NOT EXISTS (SELECT 1 FROM inbox_expectation_end WHERE subject = ? AND ended_at >= ?)
    ON CONFLICT DO NOTHING`,
  overdue: `SELECT hash, media_hash AS media, CASE WHEN rule = '${noRule}' THEN event END AS offered
    FROM inbox_expectation WHERE due_at <= ? ORDER BY due_at LIMIT ?`,
  next: 'SELECT min(due_at) AS next FROM inbox_expectation WHERE due_at > ?',
  get: `SELECT hash, media_hash AS media, event, head, trace, owed, due_at AS receivedAt
    FROM inbox_expectation WHERE hash = ?`,
  remove: 'DELETE FROM inbox_expectation WHERE hash = ?',
}

const isReady = (marked: boolean): string => `owner IS NULL AND crashes ${marked ? '> 0' : '= 0'} AND ready_at`

const findReady = (marked: boolean): string =>
  `SELECT media, turn, position, crashes, latest_at AS latestAt FROM inbox_lane
   WHERE ${isReady(marked)} <= ? ORDER BY ready_at LIMIT ?`

export const claim = {
  unmarked: findReady(false),
  marked: findReady(true),
  take: 'UPDATE inbox_lane SET owner = ?, turn = turn + 1, ready_at = NULL WHERE media = ?',
  next: `SELECT min(next) AS next FROM (
      SELECT min(ready_at) AS next FROM inbox_lane WHERE ${isReady(false)} > ?
      UNION ALL SELECT min(ready_at) FROM inbox_lane WHERE ${isReady(true)} > ?
    )`,
  /** Of a claim without an answer, which may have committed. Its turn tells: nothing else has happened to the lane. */
  release: 'UPDATE inbox_lane SET owner = NULL, ready_at = ? WHERE media = ? AND owner = ? AND turn = ?',
  /** Lanes that somebody has. Accepting is limited by what waits, without what runs. */
  held: 'SELECT count(*) AS held FROM inbox_lane WHERE owner IS NOT NULL',
}

const eventColumns = `id, event, trace, received_at AS receivedAt, owed, attempts, completed, failed, crashes, late,
  due_at AS dueAt, coalesce(due_at, since, received_at) AS since`

/** Rows that one statement reads: few, since a row may have 64 KiB. */
export const rowsPerRead = 8

/** Each limit is a literal: SQLite plans a statement again whenever a bound one changes, and binding changes it. */
export function read(isStrict: boolean) {
  // Strict: also those that are not due yet, since nothing may overtake them.
  const after = isStrict
    ? 'due_at IS NOT NULL AND id > ? ORDER BY id'
    : '(due_at, id) > (?, ?) AND due_at <= ? ORDER BY due_at, id'
  const delayed = `SELECT ${eventColumns} FROM inbox_event WHERE media = ? AND ${after} LIMIT ${rowsPerRead}`
  const untried = `SELECT ${eventColumns} FROM inbox_event
    WHERE media = ? AND id > ? AND ended_at IS NULL AND died_at IS NULL AND due_at IS NULL ORDER BY id
    LIMIT ${rowsPerRead}`
  return { first: `SELECT * FROM (${delayed}) UNION ALL SELECT * FROM (${untried})`, delayed, untried }
}

const isHeld = 'media = ? AND owner = ? AND turn = ?'

/** `attempts`: a settle that is repeated changes nothing. `completed`: a transaction may have recorded more. */
const isUnsettled = 'id = ? AND attempts = ? AND completed = ? AND ended_at IS NULL AND died_at IS NULL'

const attempt = 'attempts = ?, completed = ?, failed = coalesce(?, failed), late = max(late, ?)'
const lane = 'position = max(position, ?), latest_at = coalesce(max(latest_at, ?), ?, latest_at), crashes = crashes * ?'

export const settle = (isStrict: boolean) => ({
  /**
   * `turn`: a release that is repeated after the next claim must not free the lane. `position`: a settle that overtakes an
   * earlier one would jump over untried events.
   */
  held: `SELECT ready_at AS readyAt FROM inbox_lane WHERE ${isHeld} AND position >= ?`,
  end: `UPDATE inbox_event SET ${attempt}, ended_at = ?, event = NULL, crashes = 0, due_at = NULL, delayed_at = NULL
    WHERE ${isUnsettled}`,
  dead: `UPDATE inbox_event SET ${attempt}, died_at = ?, crashes = 0, due_at = NULL, delayed_at = NULL WHERE ${isUnsettled}`,
  retry: `UPDATE inbox_event SET ${attempt}, due_at = ?, delayed_at = ?, crashes = crashes * ? WHERE ${isUnsettled}`,
  progress: `UPDATE inbox_event SET completed = ?, late = max(late, ?) WHERE ${isUnsettled}`,
  completed: 'SELECT completed FROM inbox_event WHERE id = ?',
  /** Strict: the first event decides; loose: the first that is due. */
  due: `SELECT due_at AS due FROM inbox_event WHERE media = ? AND due_at IS NOT NULL
    ORDER BY ${isStrict ? 'id' : 'due_at'} LIMIT 1`,
  keep: `UPDATE inbox_lane SET ${lane} WHERE media = ?`,
  free: `UPDATE inbox_lane SET ${lane}, owner = NULL, ready_at = ? WHERE media = ?`,
})

export const count = `UPDATE inbox_event SET crashes = ? WHERE id = ? AND crashes IN (?, ?)
  AND EXISTS (SELECT 1 FROM inbox_lane WHERE inbox_lane.${isHeld})`

/** The record of a handler that commits with its writes, first in its transaction. */
export const transact = {
  held: `SELECT completed FROM inbox_event WHERE id = ? AND ended_at IS NULL AND died_at IS NULL
    AND EXISTS (SELECT 1 FROM inbox_lane WHERE inbox_lane.${isHeld})`,
  complete: 'UPDATE inbox_event SET completed = ? WHERE id = ?',
  completed: 'SELECT completed FROM inbox_event WHERE id = ?',
}

export const lanes = {
  /** Whoever had a lane has died: only one process at a time uses the tables. */
  join: 'UPDATE inbox_lane SET owner = NULL, crashes = crashes + 1, ready_at = ? WHERE owner IS NOT NULL',
  leave: 'UPDATE inbox_lane SET owner = NULL, ready_at = ? WHERE owner = ?',
  /** Another inbox of this process takes the file: no crash. */
  releaseAll: 'UPDATE inbox_lane SET owner = NULL, ready_at = ? WHERE owner IS NOT NULL',
}

/** After the clock was set back: what was timed while it was ahead starts its delay again. */
export const correctClock = {
  /** Lanes of such events, and lanes that are ready at a time that no event explains. To be woken for nothing does no harm. */
  correctLanes: `UPDATE inbox_lane SET ready_at = ? WHERE owner IS NULL AND ready_at > ? AND (
      media IN (SELECT media FROM inbox_event WHERE due_at IS NOT NULL AND delayed_at > ?)
      OR NOT EXISTS (SELECT 1 FROM inbox_event WHERE inbox_event.media = inbox_lane.media AND due_at >= inbox_lane.ready_at)
    )`,
  correctEvents: `UPDATE inbox_event SET due_at = ? + due_at - delayed_at, delayed_at = ?
    WHERE due_at IS NOT NULL AND delayed_at > ?`,
  correctExpectations:
    'UPDATE inbox_expectation SET due_at = ? + due_at - delayed_at, delayed_at = ? WHERE delayed_at > ?',
}

export const retry = {
  makeDue: 'UPDATE inbox_event SET due_at = ?, delayed_at = ? WHERE hash = ? AND due_at > ?',
  wake: 'UPDATE inbox_lane SET ready_at = ? WHERE media = (SELECT media FROM inbox_event WHERE hash = ?)',
}

/** Rows that one expiry looks at: about a millisecond, which deliveries may have to wait. */
export const expiryPage = 250

// Ended in the future: left by a clock that was ahead.
const hasExpired = 'id > ? AND id <= ? AND ended_at NOT BETWEEN ? AND ?'

const isIdle = `owner IS NULL AND ready_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM inbox_event WHERE inbox_event.media = inbox_lane.media)`

/** By pages of ids, not "the first that have ended": that would read all unfinished and dead ones again and again. */
export const expire = {
  page: `SELECT max(id) AS last, count(*) AS count, min(received_at) AS oldest, max(received_at) AS newest
    FROM (SELECT id, received_at FROM inbox_event WHERE id > ? ORDER BY id LIMIT ${expiryPage})`,
  media: `SELECT DISTINCT media FROM inbox_event WHERE ${hasExpired}`,
  events: `DELETE FROM inbox_event WHERE ${hasExpired}`,
  lane: `DELETE FROM inbox_lane WHERE media = ? AND ${isIdle}`,
  /** A lane that was busy when its last event was deleted is found by these pages. */
  lanePage: `SELECT max(media) AS last FROM (SELECT media FROM inbox_lane WHERE media > ? ORDER BY media LIMIT ${expiryPage})`,
  lanes: `DELETE FROM inbox_lane WHERE media > ? AND media <= ? AND ${isIdle}`,
  ends: `DELETE FROM inbox_expectation_end WHERE subject IN
    (SELECT subject FROM inbox_expectation_end WHERE accepted_at < ? OR accepted_at > ? LIMIT ${expiryPage})`,
}

/** On a connection of the application, in its transaction. `main` is the file of that connection. */
export const offer = `INSERT INTO main.inbox_expectation
    (hash, subject, media_hash, rule, began_at, due_at, event, head, owed, delayed_at)
  SELECT ?, 'offered', ?, '${noRule}', 0, ?, ?, ?, ?, ?
  WHERE NOT EXISTS (SELECT 1 FROM main.inbox_event WHERE hash = ?)
  ON CONFLICT DO NOTHING`
