import type { DeadLetter } from '../../../inbox/reading.ts'
import { type CauseReport, type DeadRow, failuresOf, makeCause } from './causes.ts'
import type { Redaction } from './redaction.ts'
import { contains } from './titled.ts'

const names = ['cause', 'text', 'handler', 'since', 'before'] as const

/** A search for dead letters, as it stands in a URL or form. */
export type DeadFilter = { readonly [Name in (typeof names)[number]]?: string }

/** Reads a filter. Skips invalid times and empty fields. */
export function readDeadFilter(given: URLSearchParams): DeadFilter {
  const found = names.flatMap((name) => {
    const value = given.get(name)?.trim()
    const isUsed = value && (name === 'since' || name === 'before' ? parseTime(value) !== undefined : true)
    return isUsed ? [[name, value]] : []
  })
  return Object.fromEntries(found)
}

/** Parses the UTC time of a `datetime-local` field. */
function parseTime(text: string | undefined): Date | undefined {
  const time = new Date(text?.endsWith('Z') ? text : `${text}Z`)
  return Number.isNaN(time.getTime()) ? undefined : time
}

/** Returns the matching rows, newest first. */
export function rowsFound({ causes }: CauseReport, filter: DeadFilter): readonly DeadRow[] {
  return causes
    .filter(({ id }) => filter.cause === undefined || id === filter.cause)
    .flatMap(({ rows }) => rows.filter((row) => isFound(row, filter)))
    .sort((a, b) => b.diedAt.getTime() - a.diedAt.getTime())
}

/** Matches a dead letter against a filter. Hidden titles never match. */
export function matchesFilter(deadLetter: DeadLetter, filter: DeadFilter, redaction: Redaction): boolean {
  if (filter.cause !== undefined && makeCause(deadLetter).id !== filter.cause) return false
  const { event, diedAt } = deadLetter
  const title = filter.text !== undefined && event ? redaction.title(event) : undefined
  return isFound({ diedAt, failures: failuresOf(deadLetter), title }, filter)
}

function isFound({ diedAt, failures, title }: Pick<DeadRow, 'diedAt' | 'failures' | 'title'>, filter: DeadFilter) {
  const [since, before, { text }] = [parseTime(filter.since), parseTime(filter.before), filter]
  return (
    (since === undefined || diedAt >= since) &&
    (before === undefined || diedAt < before) &&
    failures.some(
      ({ handler, message }) =>
        (filter.handler === undefined || handler === filter.handler) &&
        (text === undefined || contains(message, text) || contains(title, text)),
    )
  )
}
