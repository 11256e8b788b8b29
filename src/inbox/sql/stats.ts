import { type MaybePromise, whenever } from '../../internal/maybe-promise.ts'
import type { InboxStats } from '../reading.ts'
import type { Database, Value } from './database.ts'
import type { OwnWorker } from './event-row.ts'
import { noRule } from './offered.ts'
import { isElsewhere, nextOfLane, startable } from './unfinished.ts'

interface StatsRow {
  readonly startable: number | string
  readonly running: number | string
  readonly retrying: number | string
  readonly dead: number | string
  readonly expected: number | string
  /** Start of the longest wait (ms since the epoch). */
  readonly oldest: number | string | null
}

/** Counts the events by state, in one statement: each event counts once. */
export function readStats(database: Database, own: OwnWorker | undefined): MaybePromise<InboxStats> {
  const values: Value[] = []
  const value = (given: Value) => `$${values.push(given)}`
  const sql = statsQuery(database, own, value)
  return whenever(database.read<StatsRow>(sql, values), ([row]) => toStats(row as StatsRow))
}

function statsQuery(database: Database, own: OwnWorker | undefined, value: (given: Value) => string): string {
  const { dialect } = database
  const { maxCounted = Number.MAX_SAFE_INTEGER } = dialect
  const countRows = (table: string) => `(SELECT count(*) FROM (SELECT 1 FROM ${table} LIMIT ${maxCounted}) counted)`
  const elsewhere = isElsewhere(database, own?.owner, value)
  const running = [
    // One text for any number of events, so that it is prepared once.
    `${value(`,${[...(own?.running().keys() ?? [])]},`)} LIKE '%,' || id || ',%'`,
    ...(elsewhere === undefined ? [] : ['id IN (SELECT id FROM elsewhere)']),
  ].join(' OR ')
  return `
    ${elsewhere === undefined ? '' : `WITH elsewhere AS (SELECT ${nextOfLane} AS id FROM $lane lane WHERE ${elsewhere})`}
    SELECT count(*) AS startable, count(CASE WHEN is_running = 1 THEN 1 END) AS running,
      ${dialect.ms('min(CASE WHEN is_running = 0 THEN since END)')} AS oldest,
      ${countRows('$event WHERE due_at > $now')} AS retrying, ${countRows('$event WHERE died_at IS NOT NULL')} AS dead,
      ${countRows(`$expectation WHERE ${dialect.json('rule')} <> '${noRule}'`)} AS expected
    FROM (
      SELECT since, CASE WHEN ${running} THEN 1 ELSE 0 END AS is_running
      FROM (SELECT * FROM (${startable(dialect)}) every LIMIT ${maxCounted}) startable
    ) events`
}

function toStats({ startable: all, running, retrying, dead, expected, oldest }: StatsRow): InboxStats {
  return {
    waiting: Number(all) - Number(running),
    running: Number(running),
    retrying: Number(retrying),
    deadLetters: Number(dead),
    ...(Number(expected) > 0 && { expected: Number(expected) }),
    ...(oldest !== null && { oldestWaitingAt: new Date(Number(oldest)) }),
  }
}
