import type { AcceptedEvent } from '../inbox.ts'
import type { OwedExpectationChanges } from '../sql/store.ts'
import { hashKey, hashMedia } from './keys.ts'
import { literalOf, literals, type Parameter } from './literals.ts'
import { turnOff } from './schema.ts'

/** An event that is stored with its effects. */
interface ChangingEvent {
  readonly accepted: AcceptedEvent
  /** The hash of its key. */
  readonly hash: string
  readonly changes: OwedExpectationChanges
}

/** Offset up to which the clock of this process counts as that of Postgres: a statement can take as long to arrive. */
const toleratedOffset = "interval '5 s'"

/**
 * The offset from the clock of this process to that of Postgres, which decides what is overdue. Without it, a rule of two
 * minutes fired at once on a server whose clock was three minutes behind.
 */
const clockOffset = (): string => {
  const offset = `(clock_timestamp() - to_timestamp(${Date.now()} / 1000.0))`
  return `CASE WHEN ${offset} BETWEEN -${toleratedOffset} AND ${toleratedOffset} THEN interval '0' ELSE ${offset} END`
}

/** The columns of the rules that events begin or end, and of the expectations that they begin, with their types. */
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

type Row<Columns> = Readonly<Record<keyof Columns, unknown>>

/**
 * Makes a transaction of a statement that stores events, with the effects of the new ones. The second result is that of
 * the statement.
 *
 * The statement also writes the begins and the ends, and locks the row of each rule and media item among the ends. If
 * another process stores an event of the same ones, one of the two waits. Only the second statement sees what the other
 * process has committed meanwhile. It removes what is ended, in whatever order the two came.
 * @param statement makes the statement from its parameters and from further parts of its WITH. The hashes of new events
 * are in its part `new`
 * @param values the values of its parameters
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
  // Without statistics, Postgres could read all expectations instead of searching those of each subject.
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

const marksOf = ({ accepted, hash: by, changes: { at, begins, ends } }: ChangingEvent): Row<typeof markColumns>[] => [
  ...begins.map(({ rule }) => ({ by, subject: subjectOf(rule, accepted), ended_at: null })),
  ...ends.map((rule) => ({ by, subject: subjectOf(rule, accepted), ended_at: at.getTime() })),
]

const beginsOf = ({ accepted, hash: by, changes: { at, begins } }: ChangingEvent): Row<typeof beginColumns>[] =>
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

/** The hash of a rule and a media item. It is longer than that of the media item alone, since a collision would do harm. */
const subjectOf = (rule: string, { event }: AcceptedEvent): string => hashKey(JSON.stringify([rule, event.mediaId]))

/**
 * The rows of the ends are locked in one order, and after the keys, so that two processes cannot deadlock. A begin locks
 * its row and does not change it.
 */
const changeParts = (
  schema: string,
  marks: readonly Row<typeof markColumns>[],
  begins: readonly Row<typeof beginColumns>[],
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

function unnested<Columns extends object>(name: string, columns: Columns, rows: readonly Row<Columns>[]): string {
  const arrays = Object.entries(columns).map(
    ([column, type]) => `${literalOf(rows.map((row) => row[column as keyof Columns]))}::${type}[]`,
  )
  return `unnest(${arrays}) AS ${name} (${Object.keys(columns)})`
}
