import type { Overdue } from '../../../handlers/overdue.ts'
import { pausedFor } from '../../../inbox/operations/paused.ts'
import type { EventRecord, EventState, HandlerFailure, OpenExpectation, Pause } from '../../../inbox/reading.ts'
import type { DeadLetter, UnreadableDelivery } from '../../../index.ts'
import { type Paint, plain, shellQuoted, table } from '../../shared/text.ts'
import type { Named, ShownEvent } from './shown.ts'
import { time } from './times.ts'

/** The words for the states of an event. */
export const stateWords: Readonly<Record<EventState, string>> = {
  waiting: 'waiting',
  running: 'running',
  retrying: 'retrying',
  dead: 'dead letter',
  handled: 'handled',
}

/** What became of an event that did not come in time. */
export const outcomeWords: Readonly<Record<Overdue['outcome'], string | undefined>> = {
  missing: 'still missing',
  came: 'came later',
  unknown: undefined,
}

/** Says in which state an event is, or which paused handlers it waits for. Of an overdue event, that says little. */
export function stateText({ overdue, ...record }: ShownEvent, pauses: readonly Pause[] = []): string {
  const paused = pausedFor(record, pauses)
  const state = paused === undefined ? stateWords[record.state] : `waits for ${inOneLine(paused)} (paused)`
  if (overdue === undefined) return state
  return `${['overdue', outcomeWords[overdue.outcome] ?? []].flat().join(', ')} (${state})`
}

/** Formats dead letters for people: one row each, followed by the last error of every handler that failed. */
export const deadLettersText = (deadLetters: readonly Named<DeadLetter>[], paint: Paint): string =>
  rowsText(
    ['short id', 'died', 'type', 'media', 'attempts', 'key'],
    deadLetters,
    deadLetterCells,
    deadLetterErrors,
    paint,
  )

const deadLetterCells = ({ shortId: id, diedAt, event, attempts, key }: Named<DeadLetter>): string[] => [
  id,
  diedAt.toISOString(),
  plain(event?.type ?? '(unreadable)'),
  plain(event?.mediaId ?? '-'),
  `${attempts}`,
  // The last column, because most keys are long.
  shellQuoted(key),
]

const deadLetterErrors = ({ unreadable, failures }: DeadLetter): string[] =>
  unreadable === undefined ? errorLines(failures) : [`  could not be parsed: ${inOneLine(unreadable.reason)}`]

/** Formats events for people: one row each, followed by the errors of its last attempt that failed. */
export const eventsText = (events: readonly ShownEvent[], pauses: readonly Pause[], paint: Paint): string =>
  rowsText(
    ['short id', 'received', 'state', 'type', 'media', 'attempts', 'key'],
    events,
    (event) => eventCells(event, pauses),
    lastErrors,
    paint,
  )

const eventCells = (event: ShownEvent, pauses: readonly Pause[]): string[] => [
  event.shortId,
  event.receivedAt.toISOString(),
  stateText(event, pauses),
  plain(event.type),
  plain(event.mediaId),
  `${event.attempts}`,
  shellQuoted(event.key),
]

const lastErrors = ({ failedAttempts }: EventRecord): string[] => errorLines(failedAttempts.at(-1)?.failures ?? [])

/** Formats open expectations for people: one row each. */
export const expectedText = (expected: readonly OpenExpectation[], paint: Paint): string =>
  rowsText(['due', 'rule', 'began', 'media'], expected, expectedCells, () => [], paint)

const expectedCells = ({ rule, mediaId, beganAt, dueAt }: OpenExpectation): string[] => [
  time(dueAt),
  plain(rule),
  time(beganAt),
  plain(mediaId),
]

function rowsText<Item>(
  columns: readonly string[],
  items: readonly Item[],
  cells: (item: Item) => readonly string[],
  errors: (item: Item) => readonly string[],
  paint: Paint,
): string {
  const [header = '', ...rows] = table([columns, ...items.map(cells)]).split('\n')
  const lines = rows.flatMap((row, index) => [row, ...errors(items[index] as Item)])
  return [paint('dim', header), ...lines].join('\n')
}

export const errorLines = (failures: readonly HandlerFailure[]): string[] =>
  failures.map(({ handler, message }) => `  ${inOneLine(handler)}: ${inOneLine(message)}`)

export const inOneLine = (text: string): string => plain(text.replace(/\s*\n\s*/g, ' ').slice(0, 200))

/** Formats a dead letter for machines. */
export const deadLetterJson = ({ unreadable, ...deadLetter }: DeadLetter) => ({
  ...deadLetter,
  ...(unreadable && { unreadable: unreadableJson(unreadable) }),
})

const unreadableJson = ({ body, ...unreadable }: UnreadableDelivery) => ({
  ...unreadable,
  ...bodyJson(body),
})

/** Bytes that are not UTF-8 would be lost in a text. */
export function bodyJson(bytes: Uint8Array): { readonly body: string } | { readonly bodyBase64: string } {
  const buffer = Buffer.from(bytes)
  const body = buffer.toString()
  return Buffer.from(body).equals(buffer) ? { body } : { bodyBase64: buffer.toString('base64') }
}

/** Writes a number of things, such as `1 dead letter` or `3 dead letters`. */
export const counted = (count: number, thing: string): string => `${count} ${thing}${count === 1 ? '' : 's'}`
