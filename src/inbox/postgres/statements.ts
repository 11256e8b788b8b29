import { noRule } from '../sql/offered.ts'
import { dialect } from './dialect.ts'

// Every statement of the Postgres inbox on the hot path, as text to read and to EXPLAIN: `npm run explain -- postgres`.
// `$event` is a table in the inbox's schema, `$1` a value. The reasons that several share:
//
// - Locks are taken downwards only, against deadlocks: process, lane (by media), expectation, event (accept: by hash).
// - What decides by a lane's row locks it first. A second statement of the same transaction then has a newer snapshot.
// - No statement waits for a handler's transaction: that locks its lane FOR KEY SHARE, and only while it commits.
// - CTEs that lock are MATERIALIZED: the planner could run a subquery twice, and lock more than its LIMIT.
// - Arrays have no NULLs, but '' or -1: with `array_nulls` off, Postgres reads NULL as text.

/** A time in ms since the epoch, and the time until then. As numbers of JavaScript. */
const ms = (time: string): string => `round(extract(epoch FROM ${time}) * 1000)::float8`
const msUntil = (time: string): string => `ceil(extract(epoch FROM ${time} - now()) * 1000)::float8`

/** What an accept does to a lane's `ready_at`. A lane that is ready is locked, but gets no new version. */
const wake = (isStrict: boolean): string =>
  // Strict: a lane that waits for a retry goes on waiting for it.
  `DO UPDATE SET ready_at = now() WHERE lane.ready_at ${isStrict ? "= 'infinity'" : '> now()'}`

/**
 * $1 hashes, $2 media, $3 events, $4 heads, $5 times of receipt, $6 traces, $7 owed handlers: in order of arrival.
 * @param gone a WITH part that deletes what the events replace: only those whose `place` it returns are stored
 * @param parts more WITH parts, over `stored`
 * @param since since when the events wait, if not since their receipt
 */
export const accept = (isStrict: boolean, gone = '', parts = '', since = 'NULL'): string => `
WITH ${gone}given AS MATERIALIZED (
  SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::json[], $4::json[], $5::float8[], $6::text[], $7::text[])
    WITH ORDINALITY AS t (hash, media, event, head, received, trace, owed, place)
), new AS MATERIALIZED (
  SELECT * FROM given WHERE NOT EXISTS (SELECT FROM $event WHERE event.hash = given.hash)
    ${gone === '' ? '' : 'AND place IN (SELECT place FROM gone)'} -- a duplicate wakes nobody
), lanes AS (
  INSERT INTO $lane (media, ready_at) SELECT DISTINCT media, now() FROM new ORDER BY media
  ON CONFLICT (media) ${wake(isStrict)} RETURNING media
), placed AS MATERIALIZED (
  -- ids in order of arrival. count(*): all lanes are locked before the first id is drawn, so order of id is order of commit
  SELECT nextval($event_ids) AS id, ordered.*
  FROM (SELECT new.* FROM (SELECT count(*) FROM lanes) locked, new ORDER BY place) ordered
), stored AS (
  INSERT INTO $event (id, hash, media, event, head, received_at, trace, owed, since)
  SELECT id, hash, media, event, head, to_timestamp(received / 1000), nullif(trace, '')::json, nullif(owed, '')::json, ${since}
  FROM placed ORDER BY hash, id -- a key can come with two media items: crosswise hashes would deadlock
  ON CONFLICT (hash) DO NOTHING RETURNING hash
)${parts}
SELECT hash::text AS hash FROM stored`

/** Part of an accept. $9 whose event, $10 subjects, $11 times: the ends of expectations that new events bring. */
export const endExpectations = `, ends AS (
  INSERT INTO $expectation_end AS known (subject, ended_at)
  SELECT subject, max(ended_at) FROM unnest($9::uuid[], $10::uuid[], $11::bigint[]) AS t (by, subject, ended_at)
  JOIN stored ON stored.hash = by GROUP BY subject ORDER BY subject
  ON CONFLICT (subject) DO UPDATE SET ended_at = greatest(known.ended_at, excluded.ended_at), accepted_at = now()
)`

/** Clock offset that counts as none: a statement may take as long to arrive. */
const toleratedOffset = "interval '5 s'"

/**
 * Part of an accept. $12 to $22: the expectations that new events begin. $23: the time of this process. Postgres' clock
 * decides what is overdue, so deadlines move by the difference: else a two-minute rule fires at once on a server whose
 * clock is three minutes ahead.
 */
export const beginExpectations = `, begun AS (
  INSERT INTO $expectation (hash, subject, media, rule, began_at, due_at, event, head, trace, owed)
  SELECT t.hash, subject, media, rule, began_at, to_timestamp(due / 1000) +
    CASE WHEN offset_of.clock BETWEEN -${toleratedOffset} AND ${toleratedOffset} THEN interval '0' ELSE offset_of.clock END,
    event, head, nullif(trace, '')::json, owed
  FROM (SELECT clock_timestamp() - to_timestamp($23::float8 / 1000) AS clock) offset_of,
    unnest($12::uuid[], $13::uuid[], $14::uuid[], $15::bigint[], $16::json[], $17::bigint[], $18::float8[], $19::json[],
      $20::json[], $21::text[], $22::json[]) AS t (by, hash, subject, media, rule, began_at, due, event, head, trace, owed)
  JOIN stored ON stored.hash = by
  ON CONFLICT DO NOTHING
)`

/**
 * The statement after an accept with changes. $1 the subjects. The lanes are locked, so this sees every end and every
 * beginning of these subjects, in whatever order and process they came.
 */
export const removeEnded = `
DELETE FROM $expectation USING $expectation_end AS known
WHERE known.subject = ANY ($1::uuid[]) AND expectation.subject = known.subject AND began_at <= ended_at`

/** $1 how many. A plain read: firing locks the lanes, and then deletes what is still there. */
export const overdue = `
SELECT hash::text, media::text, event::text, head::text, trace::text, owed::text, ${ms('due_at')} AS "receivedAt",
  rule::text = '${noRule}' AS "isOffered"
FROM $expectation WHERE due_at <= now() ORDER BY due_at LIMIT $1`

export const nextDeadline = `
SELECT ${msUntil('due_at')} AS wait
FROM $expectation WHERE due_at > now() ORDER BY due_at LIMIT 1`

/** On a client of the application, in its transaction. $1 hash, $2 media, $3 event, $4 head, $5 owed, $6 the channel. */
export const offer = `
WITH offered AS (
  INSERT INTO $expectation (hash, subject, media, rule, began_at, due_at, event, head, owed)
  SELECT $1::uuid, $1::uuid, $2::bigint, '${noRule}', 0, clock_timestamp(), $3::json, $4::json, $5::json
  WHERE NOT EXISTS (SELECT FROM $event WHERE hash = $1::uuid)
  ON CONFLICT DO NOTHING RETURNING 1
)
SELECT pg_notify($6::text, 'offered') FROM offered`

/** Part of an accept, after `lockLanes`: once only, whoever fires it or ends it meanwhile. */
export const firing = `gone AS (
  DELETE FROM $expectation USING unnest($1::uuid[]) WITH ORDINALITY AS fired (hash, place)
  WHERE expectation.hash = fired.hash RETURNING fired.place
), `

/** $1 hash, $2 head, $3 body. */
export const keep = `
INSERT INTO $event (hash, head, body, received_at, died_at)
VALUES ($1::uuid, $2::json, $3::bytea, now(), now()) ON CONFLICT (hash) DO NOTHING`

/** Part of an accept. $8 the hash of the unreadable delivery that the events replace. */
export const replacing = `removed AS (
  DELETE FROM $event WHERE hash = $8::uuid AND body IS NOT NULL RETURNING hash
), gone AS (
  SELECT place FROM removed, generate_series(1, cardinality($1::uuid[])) AS place
), `

/** Makes the lanes, or locks them. $1 media. Without a gap in which `expire` could delete one that exists. */
export const lockLanes = `
INSERT INTO $lane (media) SELECT DISTINCT media FROM unnest($1::bigint[]) AS t (media) ORDER BY media
ON CONFLICT (media) DO UPDATE SET turn = lane.turn WHERE false`

/** A claim or takeover that commits late must not give lanes to a process that is gone: nobody would free them. */
const alive = `me AS MATERIALIZED (SELECT FROM $process WHERE id = $1 AND expires_at > now() FOR KEY SHARE)`

/**
 * $1 own id, $2 how many lanes, $3 how many marked ones, $4 where the last claim began: under a snapshot that is held open,
 * each claim would scan the index entries of all lanes claimed before. FOR UPDATE, not FOR NO KEY UPDATE: it skips lanes with
 * a transaction that is committing, and such a transaction with an older snapshot then looks again at the new owner.
 * `first` is ISO 8601, whatever the session's `DateStyle`: in its texts, IST has three meanings.
 */
export const claim = `
WITH ${alive}, free AS MATERIALIZED (
  SELECT media, ready_at FROM $lane
  WHERE owner IS NULL AND ready_at <= now() AND ready_at < 'infinity' AND crashes = 0 AND ready_at >= $4::timestamptz
    AND EXISTS (SELECT FROM me)
  ORDER BY ready_at LIMIT $2::int FOR UPDATE SKIP LOCKED
), marked AS MATERIALIZED (
  SELECT media, NULL::timestamptz FROM $lane
  WHERE owner IS NULL AND ready_at <= now() AND ready_at < 'infinity' AND crashes > 0 AND EXISTS (SELECT FROM me)
  ORDER BY ready_at LIMIT $3::int FOR UPDATE SKIP LOCKED
), taken AS (
  UPDATE $lane SET owner = $1::uuid, turn = turn + 1, ready_at = 'infinity'
  FROM (SELECT * FROM free UNION ALL SELECT * FROM marked) f WHERE lane.media = f.media RETURNING lane.media, f.ready_at
)
SELECT set_config('media_webhooks.claimed', coalesce(array_agg(media)::text, '{}'), false) AS claimed, count(*)::int AS count,
  to_json(min(ready_at)) #>> '{}' AS first FROM taken`

/** How long a lane is ready before a claim waits for those who keep it locked (ms). */
const heldUpMs = 200

/** Before a claim that waits: a lane that accepts lock one after the other. One only, or it could deadlock. $1 own id, $2 from. */
export const awaitLane = `
SELECT FROM $process WHERE id = $1 AND expires_at > now() FOR KEY SHARE;
SELECT media FROM $lane
WHERE owner IS NULL AND ready_at <= now() - interval '${heldUpMs} ms' AND ready_at < 'infinity' AND crashes = 0
  AND ready_at >= $2::timestamptz
ORDER BY ready_at LIMIT 1 FOR NO KEY UPDATE`

/** When the first free lane is ready. With EXISTS or min(), Postgres without statistics reads all of them. */
const firstReady = (where: string): string =>
  `(SELECT ready_at FROM $lane WHERE owner IS NULL AND ready_at < 'infinity' AND ${where} ORDER BY ready_at LIMIT 1)`

/** When to claim again. $1 from. Dead entries of the future are few. */
export const nextReady = `
SELECT ${msUntil(`least(
    ${firstReady('crashes = 0 AND ready_at > now()')}, ${firstReady('crashes > 0 AND ready_at > now()')})`)} AS wait,
  coalesce(${firstReady('crashes = 0 AND ready_at >= $1::timestamptz')} <= now() - interval '${heldUpMs} ms', false) AS held_up`

const claimed = "current_setting('media_webhooks.claimed')::bigint[]"

/**
 * The lanes just claimed, with their events. Sent in the claim's message, but after its COMMIT: a process that is
 * suspended while Postgres sends it a megabyte must hold no lock. $1 events a lane + 1, $2 bytes
 * of all lanes.
 */
export const readClaimed = (isStrict: boolean): string => `
SELECT lane.media::text, turn, position::float8, lane.crashes AS marks, latest_at::float8 AS "latestAt", lane.awaits IS NOT NULL AS awaits, e.*
FROM $lane LEFT JOIN LATERAL (
  SELECT id::float8, CASE WHEN before < (SELECT $2::int / greatest(1, cardinality(${claimed}))) THEN event::text END AS event, trace::text,
    ${ms('received_at')} AS "receivedAt", ${ms('coalesce(due_at, since, received_at)')} AS since, owed::text, attempts,
    ${dialect.names('completed')} AS completed, failed::text, crashes, late, due_at IS NOT NULL AS "isRetry",
    greatest(0, ${msUntil('due_at')}) AS "dueInMs"
  FROM (
    SELECT *, sum(octet_length(event::text)) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) - octet_length(event::text) AS before
    FROM (
      (SELECT * FROM $event WHERE event.media = lane.media AND due_at ${isStrict ? 'IS NOT NULL ORDER BY id' : '<= now() ORDER BY due_at'} LIMIT $1::int)
      UNION ALL
      (SELECT * FROM $event WHERE event.media = lane.media AND id > lane.position AND ended_at IS NULL AND died_at IS NULL AND due_at IS NULL
       ORDER BY id LIMIT $1::int) -- died_at: a lane that was made again starts at position 0
    ) found
  ) counted ORDER BY counted.id LIMIT $1::int
) e ON true
WHERE lane.media = ANY (${claimed}) ORDER BY lane.media, id`

/** Before `adopt`: waits for a lane that accepts keep locked. $1 own id, $2 the lanes it knows. */
export const awaitOwn = `
SELECT FROM $lane WHERE owner = $1::uuid AND NOT media = ANY ($2::bigint[]) ORDER BY media LIMIT 1 FOR NO KEY UPDATE`

/**
 * $1 own id, $2 the lanes it knows, $3 how many. The new turn fences off settles of the lost holding that are still under
 * way.
 */
export const adopt = `
WITH mine AS MATERIALIZED (
  SELECT media FROM $lane WHERE owner = $1::uuid AND NOT media = ANY ($2::bigint[]) LIMIT $3::int FOR UPDATE SKIP LOCKED
), taken AS (
  UPDATE $lane SET turn = turn + 1, ready_at = 'infinity' FROM mine WHERE lane.media = mine.media RETURNING lane.media
)
SELECT set_config('media_webhooks.claimed', coalesce(array_agg(media)::text, '{}'), false) FROM taken`

/** $1 own id, $2 names of its handlers, $3 how many. Names of removed handlers too: their events end without them. */
export const claimAwaited = `
WITH ${alive}, names AS MATERIALIZED (
  SELECT $2::text[] || ARRAY(SELECT name FROM $removed_handler) AS names
), free AS MATERIALIZED (
  SELECT media FROM $lane WHERE awaits && (SELECT names FROM names) AND owner IS NULL AND EXISTS (SELECT FROM me)
  LIMIT $3::int FOR UPDATE SKIP LOCKED
), due AS (
  UPDATE $event SET due_at = now(), delayed_at = now(), awaits = NULL FROM free
  WHERE event.media = free.media AND due_at IS NOT NULL AND event.awaits && (SELECT names FROM names)
), taken AS (
  UPDATE $lane SET owner = $1::uuid, turn = turn + 1, ready_at = 'infinity' FROM free WHERE lane.media = free.media
  RETURNING lane.media
)
SELECT set_config('media_webhooks.claimed', coalesce(array_agg(media)::text, '{}'), false) FROM taken`

/** $1 event id, $2 from, $3 to, $4 media, $5 own id, $6 turn. Absolute: repeated after a lost answer, it counts once. */
export const count = `
UPDATE $event SET crashes = $3::int WHERE id = $1::bigint AND crashes IN ($2::int, $3::int)
  AND EXISTS (SELECT FROM $lane WHERE media = $4::bigint AND owner = $5::uuid AND turn = $6::int)
RETURNING 1`

/**
 * The first statement of a settle: $1 own id, $2 media, $3 turns, $4 positions. Only the second has a snapshot that shows
 * the due times of an earlier settle that was still under way.
 */
export const lockHeld = `
SELECT FROM $lane JOIN unnest($2::bigint[], $3::int[], $4::bigint[]) AS l (media, turn, first) ON l.media = lane.media
WHERE owner = $1::uuid AND lane.turn = l.turn AND position >= l.first ORDER BY lane.media FOR NO KEY UPDATE OF lane`

/**
 * In loose order, a retry ends a rest when it is due. After a second at the earliest: a lane rests too while a handler that
 * was given up still runs.
 */
const endOfRest = "CASE WHEN s.due IS NOT NULL THEN greatest(s.due, now() + interval '1 s') END"

/**
 * The second statement of a settle. $1 own id. Lanes: $2 media, $3 turns, $4 positions when last known recorded, $5 last
 * events tried, $6 latest times, $7 clear the mark, $8 release, $9 has more, $10 rest for (ms, -1: not). Events: $11 media,
 * $12 ids, $13 kinds, $14 attempts, $15 1 if the attempt counts, $16 delays (ms), $17 completed, $18 failed attempts,
 * $19 late, $20 awaits.
 *
 * `turn`: a release that is repeated after the next claim must not free the lane. `position >= first`: a settle that
 * overtakes an earlier one would jump over untried events. SKIP LOCKED: the rows are locked already, and nothing may wait.
 * `attempts - counts`: a settle that is repeated changes nothing.
 */
export const settle = (isStrict: boolean): string => `
WITH l AS MATERIALIZED (
  SELECT * FROM unnest($2::bigint[], $3::int[], $4::bigint[], $5::bigint[], $6::text[], $7::bool[], $8::bool[], $9::bool[], $10::float8[])
    AS l (media, turn, first, last, latest, clear, release, more, rest)
), e AS MATERIALIZED (
  SELECT * FROM unnest($11::bigint[], $12::bigint[], $13::text[], $14::int[], $15::int[], $16::float8[], $17::text[], $18::text[], $19::bool[], $20::text[])
    AS e (media, id, kind, attempts, counts, delay, completed, failed, late, awaits)
), held AS MATERIALIZED (
  SELECT l.* FROM $lane JOIN l ON l.media = lane.media
  WHERE owner = $1::uuid AND lane.turn = l.turn AND position >= l.first
  ORDER BY lane.media FOR NO KEY UPDATE OF lane SKIP LOCKED
), done AS (
  UPDATE $event SET attempts = e.attempts, late = event.late OR e.late,
    completed = CASE WHEN event.completed = '{}' THEN e.completed::text[]
      ELSE event.completed || ARRAY(SELECT name FROM unnest(e.completed::text[]) name WHERE NOT name = ANY (event.completed)) END,
    failed = coalesce(nullif(e.failed, '')::json, event.failed),
    crashes = CASE WHEN kind IN ('progress', 'release') THEN event.crashes ELSE 0 END,
    ended_at = CASE WHEN kind = 'end' THEN now() END, event = CASE WHEN kind <> 'end' THEN event.event END,
    died_at = CASE WHEN kind = 'dead' THEN now() END,
    due_at = CASE WHEN kind IN ('retry', 'release') THEN now() + e.delay * interval '1 ms' WHEN kind = 'progress' THEN event.due_at END,
    delayed_at = CASE WHEN kind IN ('retry', 'release') THEN now() WHEN kind = 'progress' THEN event.delayed_at END,
    awaits = CASE WHEN kind = 'progress' THEN event.awaits ELSE nullif(e.awaits, '{}')::text[] END
  FROM e JOIN held ON held.media = e.media
  WHERE event.id = e.id AND event.attempts = e.attempts - e.counts AND ended_at IS NULL AND died_at IS NULL
  RETURNING event.id, event.media, event.due_at
), delayed AS MATERIALIZED (
  SELECT * FROM done WHERE due_at IS NOT NULL -- few, so that no lane looks through all that ended
), sums AS MATERIALIZED (
  SELECT held.*, CASE WHEN held.release THEN (
    SELECT ${isStrict ? '(array_agg(due_at ORDER BY id))[1]' : 'min(due_at)'} FROM (
      SELECT id, due_at FROM delayed WHERE delayed.media = held.media
      UNION ALL ( -- a statement does not see its own changes
        SELECT id, due_at FROM $event
        WHERE event.media = held.media AND due_at IS NOT NULL AND NOT id IN (SELECT id FROM done WHERE done.media = held.media)
        ORDER BY ${isStrict ? 'id' : 'due_at'} LIMIT 1
      )
    ) due
  ) END AS due FROM held
)
UPDATE $lane SET position = greatest(position, s.last), latest_at = greatest(latest_at, nullif(s.latest, '')::bigint),
  crashes = CASE WHEN s.clear THEN 0 ELSE crashes END, owner = CASE WHEN s.release THEN NULL ELSE owner END,
  ready_at = CASE WHEN NOT s.release THEN ready_at
    WHEN s.rest >= 0 THEN least(now() + s.rest * interval '1 ms'${isStrict ? '' : `, ${endOfRest}`})
    ${isStrict ? 'WHEN s.due IS NOT NULL THEN s.due' : ''}
    WHEN s.more OR ready_at < 'infinity' THEN now() -- the row as locked: an accept since the claim has set it
    ELSE coalesce(s.due, 'infinity') END
FROM sums s WHERE lane.media = s.media RETURNING lane.media::text,
  CASE WHEN owner IS NULL AND ready_at < 'infinity' THEN greatest(0, ${msUntil('ready_at')}) END AS wait`

/** After a settle, if events of the lanes may await handlers. $1 media. */
export const gatherAwaits = `
UPDATE $lane SET awaits = (
  SELECT array_agg(DISTINCT name) FROM $event, unnest(event.awaits) name WHERE event.media = lane.media AND due_at IS NOT NULL
) WHERE media IN (SELECT media FROM $lane WHERE media = ANY ($1::bigint[]) FOR NO KEY UPDATE SKIP LOCKED)`

/**
 * The end of a handler's transaction, in one message with COMMIT: the lock lives for a commit, not for a handler. KEY SHARE
 * lets accepts and settles pass, but no claim and no takeover. $1 media, $2 own id, $3 turn, $4 handler, $5 event id.
 *
 * The mark `owner` is missing if the handler ended the transaction itself; no row changes if another process has the lane, or
 * the handler has completed. Either case reads a setting that does not exist. Triggers of the user's tables can't raise
 * this error: deferred ones run in the commit.
 */
export const transact = `
WITH held AS MATERIALIZED (
  SELECT FROM $lane WHERE media = $1::bigint AND owner = $2::uuid AND turn = $3::int FOR KEY SHARE
), done AS (
  UPDATE $event SET completed = completed || $4::text
  WHERE id = $5::bigint AND NOT $4::text = ANY (completed) AND ended_at IS NULL AND died_at IS NULL AND EXISTS (SELECT FROM held)
  RETURNING 1
)
SELECT CASE
  WHEN current_setting('media_webhooks.owner', true) IS DISTINCT FROM $2::text THEN current_setting('media_webhooks.ended')
  WHEN count(*) = 0 THEN current_setting('media_webhooks.lost')
END FROM done`

/** $1 own id, $2 lease (ms), $3 handlers, $4 name. */
export const join = `
INSERT INTO $process (id, expires_at, lease_ms, handlers, name)
VALUES ($1, clock_timestamp() + $2::float8 * interval '1 ms', $2::float8, $3::json, $4)`

/** $1 own id, $2 lease (ms), $3 running events. Expiry is final: no row, no lanes. */
export const renew = `
UPDATE $process SET expires_at = clock_timestamp() + $2::float8 * interval '1 ms', running = nullif($3, '')::json
WHERE id = $1 AND expires_at > clock_timestamp() RETURNING 1`

/**
 * In case a signal was missed. Under a snapshot held open for hours it passes all dead entries, so that no renewal may wait
 * for it. A lease that was renewed while the clock was ahead counts as expired. $1 own id.
 */
export const lookAround = `
SELECT count(*)::int AS processes, coalesce(bool_or(
    expires_at <= clock_timestamp() OR expires_at > clock_timestamp() + 2 * lease_ms * interval '1 ms'), false) AS "hasExpired",
  coalesce(least(${firstReady('crashes = 0')}, ${firstReady('crashes > 0')}) <= now(), false) AS "hasReady",
  (SELECT media FROM $lane WHERE awaits IS NOT NULL ORDER BY media LIMIT 1) IS NOT NULL AS "hasAwaited",
  (SELECT count(*)::int FROM $lane WHERE owner = $1::uuid) AS owned
FROM $process`

/** Longest time for which a limit lets a lane rest (ms). */
const maxRestMs = 600_000

const isReadyLate = `owner IS NULL AND ready_at < 'infinity' AND ready_at > now() + ${maxRestMs} * interval '1 ms'`

/** Names one condition of `crashes`, so that Postgres can use the partial index with it. */
const readyLate = (which: string): string => `SELECT media FROM $lane WHERE ${isReadyLate} AND ${which}`

/**
 * After the clock was set back: what was timed while it was ahead starts its delay again, and a lane that is ready later than
 * any of its events is due is woken. Only events of lanes that it can lock, or that somebody has: a free lane must be woken
 * with them.
 */
export const correctClock = [
  `WITH early AS MATERIALIZED (
     SELECT DISTINCT media FROM $event WHERE due_at IS NOT NULL AND delayed_at > now()
   ), free AS MATERIALIZED (
     SELECT media FROM $lane WHERE media IN (SELECT media FROM early) AND owner IS NULL FOR UPDATE SKIP LOCKED
   ), unexplained AS MATERIALIZED (
     SELECT media FROM $lane
     WHERE media IN (${readyLate('crashes = 0')} UNION ALL ${readyLate('crashes > 0')}) AND ${isReadyLate}
       AND NOT EXISTS (SELECT FROM $event WHERE event.media = lane.media AND due_at >= ready_at) FOR UPDATE SKIP LOCKED
   ), woken AS (
     UPDATE $lane SET ready_at = now() WHERE media IN (SELECT media FROM free UNION ALL SELECT media FROM unexplained)
   )
   UPDATE $event SET due_at = now() + (due_at - delayed_at), delayed_at = now() WHERE id IN (
     SELECT id FROM $event WHERE due_at IS NOT NULL AND delayed_at > now() AND (media IN (SELECT media FROM free)
       OR EXISTS (SELECT FROM $lane WHERE lane.media = event.media AND owner IS NOT NULL)) FOR NO KEY UPDATE SKIP LOCKED
   )`,
  `UPDATE $expectation SET due_at = now() + (due_at - delayed_at), delayed_at = now() WHERE hash IN (
     SELECT hash FROM $expectation WHERE delayed_at > now() FOR UPDATE SKIP LOCKED
   )`,
]

/**
 * Frees the lanes of expired processes, past locked ones, and marks them. FOR UPDATE waits for no claim (their KEY SHARE),
 * and a renewal or claim that waits for it finds -infinity. Before the lanes, it waits for a hot one, as a claim does. A
 * process is deleted with its last lane: no claim of it can commit after its row was locked, so none is missed. A lease
 * that was renewed while the clock was ahead begins again.
 */
export const takeOver = [
  `UPDATE $process SET expires_at = clock_timestamp() + lease_ms * interval '1 ms'
   WHERE expires_at > clock_timestamp() + 2 * lease_ms * interval '1 ms'`,
  `UPDATE $process SET expires_at = '-infinity'
   WHERE id IN (SELECT id FROM $process WHERE expires_at <= clock_timestamp() FOR UPDATE SKIP LOCKED)`,
  `SELECT FROM $lane WHERE owner IN (SELECT id FROM $process WHERE expires_at = '-infinity')
   ORDER BY media LIMIT 1 FOR NO KEY UPDATE`,
  `WITH dead AS MATERIALIZED (
     SELECT media FROM $lane WHERE owner IN (SELECT id FROM $process WHERE expires_at = '-infinity')
     LIMIT 500 FOR UPDATE SKIP LOCKED
   ) UPDATE $lane SET owner = NULL, crashes = crashes + 1, ready_at = now() FROM dead WHERE lane.media = dead.media`,
  `DELETE FROM $process
   WHERE expires_at = '-infinity' AND NOT EXISTS (SELECT FROM $lane WHERE lane.owner = process.id)`,
  `SELECT EXISTS (SELECT FROM $process WHERE expires_at = '-infinity') AS more`,
]

/**
 * The process first: this waits for a claim under way, so that the next statement sees its lanes. They are locked in
 * order, because a bare UPDATE locks in the order of its scan. $1 own id.
 */
export const leave = [
  `DELETE FROM $process WHERE id = $1`,
  `SELECT FROM $lane WHERE owner = $1::uuid ORDER BY media FOR NO KEY UPDATE`,
  `UPDATE $lane SET owner = NULL, ready_at = now() WHERE owner = $1::uuid`,
]

/** $1 own id, $2 handlers. */
export const publish = `UPDATE $process SET handlers = $2::json WHERE id = $1`

/** $1 names of own handlers, as JSON. */
export const haveHandlers = `DELETE FROM $removed_handler WHERE name = ANY ($1::text[])`

/** $1 own id, $2 names of handlers that it has no longer, as JSON: removed, unless another process has them. */
export const removeHandlers = `
INSERT INTO $removed_handler (name)
SELECT DISTINCT name FROM unnest($2::text[]) AS t (name) WHERE NOT EXISTS (
  SELECT FROM $process, json_array_elements(handlers) handler WHERE id <> $1::uuid AND (handler -> 'name')::text = name
) ON CONFLICT (name) DO UPDATE SET removed_at = now() RETURNING 1`

export const handlers = `
SELECT handlers::text, NULL AS removed FROM $process WHERE expires_at > clock_timestamp()
UNION ALL SELECT NULL, name FROM $removed_handler`

/** After `lockLanes`. $1 ids of dead letters. The new ids are drawn under the locks, as an accept draws them. */
export const replay = (isStrict: boolean): string => `
WITH given AS MATERIALIZED (
  SELECT nextval($event_ids) AS next, id FROM (SELECT id FROM unnest($1::bigint[]) WITH ORDINALITY AS t (id, place) ORDER BY place) ordered
), back AS (
  UPDATE $event SET id = given.next, died_at = NULL, attempts = 0, crashes = 0, since = now() FROM given
  WHERE event.id = given.id AND died_at IS NOT NULL AND body IS NULL RETURNING given.id AS former, event.media
), woken AS (
  UPDATE $lane SET ready_at = now() WHERE media IN (SELECT media FROM back) AND ready_at ${isStrict ? "= 'infinity'" : '> now()'}
)
SELECT former::float8 FROM back`

/** Makes a retry due. $1 its hash. The lane is locked first; a second statement then changes the event. */
export const retry = [
  `UPDATE $lane SET ready_at = now()
   WHERE media = (SELECT media FROM $event WHERE hash = $1::uuid AND due_at > now())`,
  `UPDATE $event SET due_at = now(), delayed_at = now(), awaits = NULL
   WHERE hash = $1::uuid AND due_at > now() RETURNING 1`,
]

/** Idle lanes were taken under the id $3. Looked at with a newer snapshot, the empty ones go. */
const deleteTaken = [
  `DELETE FROM $lane WHERE owner = $3::uuid AND NOT EXISTS (SELECT FROM $event WHERE event.media = lane.media)`,
  `UPDATE $lane SET owner = NULL WHERE owner = $3::uuid`,
]

export const expiryPage = 1_000

/**
 * A page of ids, not "the first that have ended": that would read all unfinished and dead ones again and again. $1 after this
 * id, $2 keys are remembered for (ms), $3 a new id. Idle lanes are taken before they are deleted: a DELETE … WHERE NOT EXISTS
 * deletes a lane whose event came, ran and died meanwhile.
 */
export const expire = [
  // Where the pages end, before rows go. Ids are in order of acceptance: once a page has only young events, so have all
  // later ones.
  `SELECT max(id)::text AS last, count(*)::int AS count,
     coalesce(bool_and(received_at > now() - $2::float8 * interval '1 ms'), true) AS young,
     (SELECT max(media)::text FROM (SELECT media FROM $lane WHERE media > $4::bigint ORDER BY media LIMIT ${expiryPage}) lanes
       HAVING count(*) = ${expiryPage}) AS lane
   FROM (SELECT id, received_at FROM $event WHERE id > $1::bigint ORDER BY id LIMIT ${expiryPage}) page`,
  `WITH page AS MATERIALIZED (
     SELECT id FROM $event WHERE id > $1::bigint ORDER BY id LIMIT ${expiryPage}
   ), old AS MATERIALIZED (
     SELECT id FROM $event WHERE id IN (SELECT id FROM page) AND ended_at < now() - $2::float8 * interval '1 ms'
     FOR UPDATE SKIP LOCKED
   ), gone AS (
     DELETE FROM $event USING old WHERE event.id = old.id RETURNING media
   ), idle AS MATERIALIZED (
     SELECT media FROM $lane WHERE media IN (SELECT media FROM gone) AND owner IS NULL AND ready_at = 'infinity'
     FOR UPDATE SKIP LOCKED
   )
   UPDATE $lane SET owner = $3::uuid FROM idle WHERE lane.media = idle.media`,
  ...deleteTaken,
  // A lane that was busy then stays until one of these pages finds it. $4 after this lane.
  `WITH page AS MATERIALIZED (
     SELECT media FROM $lane WHERE media > $4::bigint ORDER BY media LIMIT ${expiryPage}
   ), idle AS MATERIALIZED (
     SELECT media FROM $lane WHERE media IN (SELECT media FROM page) AND owner IS NULL AND ready_at = 'infinity'
       AND NOT EXISTS (SELECT FROM $event WHERE event.media = lane.media) FOR UPDATE SKIP LOCKED
   )
   UPDATE $lane SET owner = $3::uuid FROM idle WHERE lane.media = idle.media`,
  ...deleteTaken,
  `DELETE FROM $expectation_end WHERE subject IN (
     SELECT subject FROM $expectation_end WHERE accepted_at < now() - $2::float8 * interval '1 ms'
     ORDER BY accepted_at LIMIT ${expiryPage} FOR UPDATE SKIP LOCKED
   ) RETURNING 1`,
  `DELETE FROM $removed_handler WHERE removed_at < now() - $2::float8 * interval '1 ms'`,
]

/** Before statements off the hot path. Each has an index, but the planner may prefer to read all events of the last day. */
export const useIndexes = [
  ...['enable_seqscan', 'enable_hashjoin', 'enable_mergejoin', 'jit'].map((name) => `SET LOCAL ${name} = off`),
  'SET LOCAL max_parallel_workers_per_gather = 0',
].join('; ')
