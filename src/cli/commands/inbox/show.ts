import { readOverdueReport } from '../../../handlers/expectations.ts'
import { type OverdueOutcome, outcomeWords } from '../../../handlers/overdue.ts'
import { pausedFor } from '../../../inbox/operations/paused.ts'
import type { DeadLetter, EventRecord, EventState, FailedAttempt, TraceCarrier } from '../../../inbox/reading.ts'
import { plain, plainJson, shellQuoted, table } from '../../shared/text.ts'
import type { ActionContext, InboxAction } from './action.ts'
import { eventCommand } from './command-line.ts'
import { bodyJson, deadLetterJson, errorLines, inOneLine, stateText } from './print.ts'
import { named, type ShownEvent, shownEvent, type WithShortId } from './shown.ts'
import { time } from './times.ts'

export const show: InboxAction = {
  help: ['show <key>', 'prints everything about an event or an unreadable delivery: times, attempts, errors, payload'],
  flags: [],
  takes: 'key',
  async run(context) {
    const { inbox, values, screen } = context
    const [key = ''] = context.words
    const record = await inbox.events.get(key)
    const deadLetter = record === undefined ? await inbox.deadLetters.get(key) : undefined
    if (record !== undefined) {
      const event = await shownEvent(inbox, record)
      if (values.json) screen.json(event)
      else screen.print(await eventText(event, context))
    } else if (deadLetter !== undefined) {
      const dead = await named(deadLetter)
      if (values.json) screen.json({ state: 'dead', ...deadLetterJson(dead) })
      else screen.print(await unreadableText(dead, context))
    } else {
      if (values.json) screen.json(null)
      screen.note(`no event has the key ${shellQuoted(key)}: ${whyUnknown(inbox.events.states)}`)
      return 1
    }
    return 0
  },
}

/** Why an inbox may not know an event. */
export const whyUnknown = (states: readonly EventState[]): string =>
  `its delivery has not arrived or was rejected, its type has no handler, it was discarded, or it was handled${
    states.includes('handled') ? ' so long ago that it is forgotten (24 h by default)' : ' (this inbox forgets those)'
  }`

async function eventText(record: ShownEvent, context: ActionContext): Promise<string> {
  const pauses = await context.inbox.pauses.list()
  const { key, type, mediaId, state, receivedAt, attempts, completed, failedAttempts, dueAt, endedAt, trace } = record
  const { startedAt, process, owed = [], overdue } = record
  const isPaused = pausedFor(record, pauses) !== undefined
  const facts = {
    'short id': record.shortId,
    key: shellQuoted(key),
    type: plain(type),
    ...(overdue && overdueFacts(record, overdue)),
    media: shellQuoted(mediaId),
    state: stateText(record, pauses),
    [overdue ? 'due' : 'received']: time(receivedAt),
    attempts: `${attempts}`,
    ...(completed.length > 0 && { completed: completed.map(inOneLine).join(', ') }),
    ...(owed.length > 0 && { 'still owed': owed.map(inOneLine).join(', ') }),
    ...(startedAt && { 'running since': time(startedAt) }),
    ...(process && { process: inOneLine(process) }),
    ...(dueAt && !isPaused && { 'next attempt': time(dueAt) }),
    ...(endedAt && { [state === 'dead' ? 'died' : 'handled']: time(endedAt) }),
    ...(trace && traceFacts(trace)),
  }
  const payload = record.event?.payload
  return [
    factsText(facts),
    ...(failedAttempts.length > 0 ? [`failed attempts:\n${failedAttempts.map(attemptText).join('\n')}`] : []),
    payload === undefined
      ? 'The payload of a handled event is not kept.'
      : `${overdue ? 'payload of the event that began it' : 'payload'}:\n${plainJson(payload, 2)}`,
    ...(isPaused ? [] : await nextStep(record, context)),
  ].join('\n\n')
}

function overdueFacts({ event }: EventRecord, { rule, begunBy, awaited, came, outcome }: OverdueOutcome) {
  const unknown = 'unknown: this inbox forgets events once they are handled'
  const what = `${outcomeWords[outcome] ?? unknown}${came ? `, ${time(came.receivedAt)}` : ''}`
  return {
    rule: inOneLine(rule),
    'begun by': plain((event && readOverdueReport(event)?.event.type) ?? begunBy),
    expected: `${awaited.map(inOneLine).join(' or ')}: ${what}`,
  }
}

const factsText = (facts: Readonly<Record<string, string>>): string => table(Object.entries(facts))

const attemptText = ({ number, failures, failedAt }: FailedAttempt): string =>
  [
    `  ${number}  ${time(failedAt)}`,
    ...failures.flatMap((failure) => [
      ...errorLines([failure]).map((line) => `   ${line}`),
      ...(failure.stack?.split('\n') ?? []).map((line) => `       ${plain(line)}`),
    ]),
  ].join('\n')

/** The trace id, or all fields in a format other than W3C's. */
function traceFacts(trace: TraceCarrier): Readonly<Record<string, string>> {
  const [, id] = /^[\da-f]{2}-([\da-f]{32})-/.exec(trace['traceparent'] ?? '') ?? []
  if (id !== undefined) return { trace: id }
  const fields = Object.entries(trace).map(([name, value]) => `${inOneLine(name)}=${inOneLine(value)}`)
  return { trace: fields.join(' ') }
}

async function nextStep({ key, state }: EventRecord, context: ActionContext): Promise<string[]> {
  if (state === 'dead')
    return [`To handle it again, once its handler is fixed:\n  ${await eventCommand(context, 'replay', key)}`]
  if (state === 'retrying') return [`To start the next attempt now:\n  ${await eventCommand(context, 'retry', key)}`]
  return []
}

async function unreadableText(
  { shortId, key, receivedAt, diedAt, unreadable }: WithShortId<DeadLetter>,
  context: ActionContext,
): Promise<string> {
  const { reason = '', eventId, body = new Uint8Array() } = unreadable ?? {}
  const facts = {
    'short id': shortId,
    key: shellQuoted(key),
    state: 'dead letter: a delivery that could not be parsed',
    reason: inOneLine(reason),
    ...(eventId !== undefined && { 'event id': inOneLine(eventId) }),
    received: time(receivedAt),
    died: time(diedAt),
  }
  const content = bodyJson(body)
  const text =
    'body' in content
      ? `body, ${body.length} bytes:\n${content.body.split('\n').map(plain).join('\n')}`
      : `body, ${body.length} bytes that are not UTF-8, in base64:\n${content.bodyBase64}`
  const command = await eventCommand(context, 'replay', key)
  const next = `To try again, once you have deployed a version that can parse it:\n  ${command}`
  return [factsText(facts), text, next].join('\n\n')
}
