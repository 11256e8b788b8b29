import { overdueText } from '../../../handlers/overdue.ts'
import { pausedFor } from '../../../inbox/operations/paused.ts'
import type { EventRecord, EventState, HandlerFailure, OpenExpectation, Pause } from '../../../inbox/reading.ts'
import type { DeadLetter, UnreadableDelivery } from '../../../index.ts'
import { type Paint, plain, shellQuoted, table } from '../../shared/text.ts'
import type { ShownEvent, WithShortId } from './shown.ts'
import { time } from './times.ts'

export const stateWords: Readonly<Record<EventState, string>> = {
  waiting: 'waiting',
  running: 'running',
  retrying: 'retrying',
  dead: 'dead letter',
  handled: 'handled',
}

/** The state, or the paused handlers it waits for. Overdue events show the awaited event first. */
export function stateText({ overdue, ...record }: ShownEvent, pauses: readonly Pause[] = []): string {
  const paused = pausedFor(record, pauses)
  const state = paused === undefined ? stateWords[record.state] : `waits for ${inOneLine(paused)} (paused)`
  return overdue === undefined ? state : `${overdueText(overdue)} (${state})`
}

/** A row per dead letter, then the last error of each failed handler. */
export const deadLettersText = (deadLetters: readonly WithShortId<DeadLetter>[], paint: Paint): string =>
  rowsText(deadLetterRows, deadLetters, paint)

const deadLetterCells = ({ shortId: id, diedAt, event, attempts, key }: WithShortId<DeadLetter>): string[] => [
  id,
  diedAt.toISOString(),
  plain(event?.type ?? '(unreadable)'),
  plain(event?.mediaId ?? '-'),
  `${attempts}`,
  // Last, because most keys are long.
  shellQuoted(key),
]

export const deadLetterErrors = ({ unreadable, failures }: DeadLetter): string[] =>
  unreadable === undefined ? errorLines(failures) : [`  could not be parsed: ${inOneLine(unreadable.reason)}`]

const deadLetterRows: RowLayout<WithShortId<DeadLetter>> = {
  columns: ['short id', 'died', 'type', 'media', 'attempts', 'key'],
  cells: deadLetterCells,
  errors: deadLetterErrors,
}

/** A row per event, then the errors of its last failed attempt. */
export function eventsText(events: readonly ShownEvent[], pauses: readonly Pause[], paint: Paint): string {
  const columns = ['short id', 'received', 'state', 'type', 'media', 'attempts', 'key']
  return rowsText({ columns, cells: (event) => eventCells(event, pauses), errors: lastErrors }, events, paint)
}

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

export const expectedText = (expected: readonly OpenExpectation[], paint: Paint): string =>
  rowsText({ columns: ['due', 'rule', 'began', 'media'], cells: expectedCells, errors: () => [] }, expected, paint)

const expectedCells = ({ rule, mediaId, beganAt, dueAt }: OpenExpectation): string[] => [
  time(dueAt),
  plain(rule),
  time(beganAt),
  plain(mediaId),
]

interface RowLayout<Item> {
  readonly columns: readonly string[]
  readonly cells: (item: Item) => readonly string[]
  /** The lines below an item's row. */
  readonly errors: (item: Item) => readonly string[]
}

function rowsText<Item>({ columns, cells, errors }: RowLayout<Item>, items: readonly Item[], paint: Paint): string {
  const [header = '', ...rows] = table([columns, ...items.map(cells)]).split('\n')
  const lines = rows.flatMap((row, index) => [row, ...errors(items[index] as Item)])
  return [paint('dim', header), ...lines].join('\n')
}

export const errorLines = (failures: readonly HandlerFailure[]): string[] =>
  failures.map(({ handler, message }) => `  ${inOneLine(handler)}: ${inOneLine(message)}`)

export const inOneLine = (text: string): string => plain(text.replace(/\s*\n\s*/g, ' ').slice(0, 200))

export const deadLetterJson = ({ unreadable, ...deadLetter }: DeadLetter) => ({
  ...deadLetter,
  ...(unreadable && { unreadable: unreadableJson(unreadable) }),
})

const unreadableJson = ({ body, ...unreadable }: UnreadableDelivery) => ({
  ...unreadable,
  ...bodyJson(body),
})

/** Base64 for bytes that are not UTF-8, which a string would lose. */
export function bodyJson(bytes: Uint8Array): { readonly body: string } | { readonly bodyBase64: string } {
  const buffer = Buffer.from(bytes)
  const body = buffer.toString()
  return Buffer.from(body).equals(buffer) ? { body } : { bodyBase64: buffer.toString('base64') }
}

/** `1 dead letter`, `3 dead letters`. */
export const counted = (count: number, thing: string): string => `${count} ${thing}${count === 1 ? '' : 's'}`
