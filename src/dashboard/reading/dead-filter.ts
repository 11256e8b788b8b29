import type { DeadLetter } from '../../inbox/reading.ts'
import { type CauseReport, causeOf, type DeadRow, failuresOf } from './causes.ts'

const names = ['cause', 'text', 'handler', 'since', 'before'] as const

/** The dead letters that are searched for, in the words of an address or a form. */
export type DeadFilter = { readonly [Name in (typeof names)[number]]?: string }

/** Reads a filter. Times that are invalid, and fields that are empty, are left out. */
export function readDeadFilter(given: URLSearchParams): DeadFilter {
  const found = names.flatMap((name) => {
    const value = given.get(name)?.trim()
    const isUsed = value && (name === 'since' || name === 'before' ? timeOf(value) !== undefined : true)
    return isUsed ? [[name, value]] : []
  })
  return Object.fromEntries(found)
}

/** Reads a time as a field of a form has it. It is in UTC. */
function timeOf(text: string | undefined): Date | undefined {
  const time = new Date(text?.endsWith('Z') ? text : `${text}Z`)
  return Number.isNaN(time.getTime()) ? undefined : time
}

/** Finds the rows of a report that match a filter, newest first. */
export function rowsFound({ causes }: CauseReport, filter: DeadFilter): readonly DeadRow[] {
  return causes
    .filter(({ id }) => filter.cause === undefined || id === filter.cause)
    .flatMap(({ rows }) => rows.filter((row) => isFound(row, filter)))
    .sort((a, b) => b.diedAt.getTime() - a.diedAt.getTime())
}

/** Returns true if a dead letter matches a filter. */
export const matchesFilter = (deadLetter: DeadLetter, filter: DeadFilter): boolean =>
  (filter.cause === undefined || causeOf(deadLetter).id === filter.cause) &&
  isFound({ diedAt: deadLetter.diedAt, failures: failuresOf(deadLetter) }, filter)

/** Compares the last failures of a dead letter and the time of its death with a filter. */
function isFound({ diedAt, failures }: Pick<DeadRow, 'diedAt' | 'failures'>, filter: DeadFilter): boolean {
  const [since, before, text] = [timeOf(filter.since), timeOf(filter.before), filter.text?.toLowerCase()]
  return (
    (since === undefined || diedAt >= since) &&
    (before === undefined || diedAt < before) &&
    failures.some(
      ({ handler, message }) =>
        (filter.handler === undefined || handler === filter.handler) &&
        (text === undefined || message.toLowerCase().includes(text)),
    )
  )
}
