import type { AcceptedEvent } from '../inbox.ts'
import type { OwedExpectationChanges } from '../sql/store.ts'
import { hashKey, hashMedia } from './keys.ts'
import { literalOf, literals, type Parameter } from './literals.ts'
import { turnOff } from './schema.ts'

/** An event, and the expectations it begins and ends. */
interface ChangingEvent {
  readonly accepted: AcceptedEvent
  /** Hash of its key. */
  readonly hash: string
  readonly changes: OwedExpectationChanges
}

/** Clock offset that counts as none: a statement may take as long to arrive. */
const toleratedOffset = "interval '5 s'"

/**
 * Offset from this process's clock to Postgres', which decides what is overdue. Without it, a two-minute rule fired at
 * once on a server whose clock was three minutes behind.
 */
const clockOffset = (): string => {
  const offset = `(clock_timestamp() - to_timestamp(${Date.now()} / 1000.0))`
  return `CASE WHEN ${offset} BETWEEN -${toleratedOffset} AND ${toleratedOffset} THEN interval '0' ELSE ${offset} END`
}

/** Columns, with types, of the subjects that events mark and of the expectations they begin. */
const markColumns = { by: 'uuid', subject: 'uuid', ended_at: 'bigint' }
const beginColumns = {
  by: 'uuid',
  hash: 'uuid',
  subject: 'uuid',
  media: 'bigint',
  rule: 'json',
  began_at: 'bigint',
  due: 'float8',
  event: 'json',
  trace: 'json',
  owed: 'json',
}

type RowOf<Columns> = Readonly<Record<keyof Columns, unknown>>

/**
 * Builds a transaction that runs `statement` and changes the expectations of the new events. The result of `statement`
 * is the second. It also writes begins and ends, and locks the row of each subject (a rule and a media item): of two
 * processes that store events of the same subject, one waits. Only the DELETE sees what the other committed meanwhile,
 * and removes ended expectations in whatever order the two came.
 * @param statement built from its parameters and further WITH parts. Its part `new` has the hashes of new events
 */
export function withChanges(
  schema: string,
  statement: (parameter: Parameter, parts: string) => string,
  values: readonly unknown[],
  events: readonly ChangingEvent[],
): string {
  const marks = events.flatMap(marksOf)
  const begins = events.flatMap(beginsOf)
  const text = statement(literals(values), changeParts(schema, marks, begins))
  // Without statistics, Postgres might read all expectations instead of looking up each subject.
  const settings = turnOff('enable_seqscan', 'enable_hashjoin', 'enable_mergejoin', 'jit')
  return `
    BEGIN ISOLATION LEVEL READ COMMITTED;
    ${text};
    ${settings};
    DELETE FROM ${schema}.expectation USING ${schema}.expectation_end AS remembered
    WHERE remembered.subject = ANY ('{${marks.map(({ subject }) => subject)}}'::uuid[])
      AND expectation.subject = remembered.subject AND began_at <= ended_at;
    COMMIT`
}

const marksOf = ({ accepted, hash: by, changes: { at, begins, ends } }: ChangingEvent): RowOf<typeof markColumns>[] => [
  ...begins.map(({ rule }) => ({ by, subject: subjectOf(rule, accepted), ended_at: null })),
  ...ends.map((rule) => ({ by, subject: subjectOf(rule, accepted), ended_at: at.getTime() })),
]

const beginsOf = ({ accepted, hash: by, changes: { at, begins } }: ChangingEvent): RowOf<typeof beginColumns>[] =>
  begins.map(({ rule, dueAt, overdue: { event, trace }, owed }) => ({
    by,
    hash: hashKey(event.key),
    subject: subjectOf(rule, accepted),
    media: hashMedia(event.mediaId),
    rule: JSON.stringify(rule),
    began_at: at.getTime(),
    due: dueAt.getTime(),
    event: JSON.stringify(event),
    trace: trace && JSON.stringify(trace),
    owed: JSON.stringify(owed),
  }))

/** Hash of a rule and a media item. Longer than a media item's, since a collision would do harm. */
const subjectOf = (rule: string, { event }: AcceptedEvent): string => hashKey(JSON.stringify([rule, event.mediaId]))

/** End rows are locked in one order, after the keys, against deadlocks. A begin locks its row without changing it. */
const changeParts = (
  schema: string,
  marks: readonly RowOf<typeof markColumns>[],
  begins: readonly RowOf<typeof beginColumns>[],
): string =>
  `, marked AS (
    INSERT INTO ${schema}.expectation_end AS remembered (subject, ended_at)
    SELECT subject, max(ended_at) FROM ${unnested('mark', markColumns, marks)} JOIN new ON new.hash = by GROUP BY subject ORDER BY subject
    ON CONFLICT (subject) DO UPDATE
    SET ended_at = greatest(remembered.ended_at, excluded.ended_at), accepted_at = excluded.accepted_at
    WHERE excluded.ended_at IS NOT NULL
  ), begun AS (
    INSERT INTO ${schema}.expectation (hash, subject, media, rule, began_at, due_at, event, trace, owed)
    SELECT begun.hash, subject, media, rule, began_at, to_timestamp(due / 1000) + ${clockOffset()}, event, trace, owed
    FROM ${unnested('begun', beginColumns, begins)} JOIN new ON new.hash = by
    ON CONFLICT DO NOTHING
  )`

function unnested<Columns extends object>(name: string, columns: Columns, rows: readonly RowOf<Columns>[]): string {
  const arrays = Object.entries(columns).map(
    ([column, type]) => `${literalOf(rows.map((row) => row[column as keyof Columns]))}::${type}[]`,
  )
  return `unnest(${arrays}) AS ${name} (${Object.keys(columns)})`
}
