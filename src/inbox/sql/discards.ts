import type { Logger } from '../../internal/logger.ts'
import { maxUnreadable, unreadableKey } from '../engine/stored.ts'
import type { UnreadableDelivery } from '../reading.ts'
import type { Database } from './database.ts'
import { type DeadHeadRow, deadHeadColumns, readDeadHead, undamaged, writeUnreadableHead } from './dead-letter-row.ts'

/** Dead letters dropped per commit. */
const droppedAtOnce = 100

/** The key stays known: a discarded event that is delivered again is a duplicate. */
const discardEvent = `UPDATE $event SET event = NULL, head = NULL, failed = NULL, trace = NULL, died_at = NULL, ended_at = $now
  WHERE hash = $1 AND died_at IS NOT NULL AND body IS NULL`

const discardUnreadable = 'DELETE FROM $event WHERE hash = $1 AND body IS NOT NULL'

/** Deletes dead letters in one commit. Returns the keys of those deleted. */
export async function discard(
  database: Pick<Database, 'change' | 'hashKey'>,
  keys: readonly string[],
): Promise<readonly string[]> {
  const statements = keys.flatMap((key) => {
    const values = [database.hashKey(key)]
    return [
      { sql: discardEvent, values },
      { sql: discardUnreadable, values },
    ]
  })
  const changed = await database.change(statements)
  return keys.filter((_, index) => (changed[2 * index] ?? 0) + (changed[2 * index + 1] ?? 0) > 0)
}

/** Drops up to 100 of the oldest dead letters past `maxKept`. Returns true if more may be left. */
export async function dropOldest(
  database: Pick<Database, 'read' | 'change' | 'dialect' | 'hashKey'>,
  kind: 'events' | 'unreadable',
  maxKept: number,
  logger: Logger,
): Promise<boolean> {
  const sql = `SELECT ${deadHeadColumns(database.dialect)} FROM $event event
    WHERE died_at IS NOT NULL AND media IS ${kind === 'events' ? 'NOT NULL' : 'NULL'}
    ORDER BY event.died_at DESC, id DESC LIMIT ${droppedAtOnce} OFFSET $1`
  const rows = await database.read<DeadHeadRow>(sql, [maxKept])
  if (rows.length === 0) return false
  const keys = undamaged(rows, readDeadHead).map(({ key }) => key)
  const dropped = await discard(database, keys)
  for (const key of dropped) logger.error({ key }, 'a dead letter was dropped to make room for a newer one')
  return dropped.length > 0
}

/** Keeps an unreadable delivery, unless it is already kept. Drops the oldest past the limit. */
export async function keepUnreadable(
  database: Database,
  unreadable: UnreadableDelivery,
  logger: Logger,
): Promise<void> {
  const key = await unreadableKey(unreadable)
  const head = writeUnreadableHead(key, unreadable)
  await database.run(database.steps.keep({ hash: database.hashKey(key), head, body: unreadable.body }))
  while (await dropOldest(database, 'unreadable', maxUnreadable, logger));
}
