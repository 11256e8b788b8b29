import { WebhookError } from '../../../errors.ts'
import { pausedFor } from '../../../inbox/operations/paused.ts'
import type { EventState, ReadableInbox } from '../../../inbox/reading.ts'
import { type DeadFilter, matchesFilter, readDeadFilter } from '../reading/dead-filter.ts'
import { eachDeadLetter, eachEvent } from '../reading/each.ts'
import type { InboxView } from '../reading/titled.ts'

export const acts = ['replay', 'discard', 'retry', 'stop-handler'] as const

export type Act = (typeof acts)[number]

export type Selection =
  | { readonly scope: 'keys'; readonly keys: readonly string[] }
  /** Filtered or all dead letters, up to the time the operator saw the page. Same for `events`. */
  | { readonly scope: 'found'; readonly filter: DeadFilter; readonly until: Date }
  | { readonly scope: 'all'; readonly until: Date }
  | { readonly scope: 'events'; readonly state: EventState; readonly type?: string | undefined; readonly until: Date }

/**
 * Reads a selection from a form.
 * @throws WebhookError `invalid_option`
 */
export function readSelection(form: URLSearchParams): Selection {
  const scope = form.get('scope') ?? 'keys'
  if (scope === 'keys') return { scope, keys: [...new Set(form.getAll('key'))] }
  const until = new Date(Number(form.get('until') ?? Number.NaN))
  if (scope === 'all' && isTime(until)) return { scope, until }
  const filter = readDeadFilter(form)
  if (scope === 'found' && isTime(until) && Object.keys(filter).length > 0) return { scope, filter, until }
  const state = actedOn.find((each) => each === form.get('state'))
  if (scope === 'events' && isTime(until) && state) return { scope, state, type: form.get('type') ?? undefined, until }
  throw new WebhookError('invalid_option', 'the form does not say which events are meant')
}

const actedOn: readonly EventState[] = ['dead', 'retrying']

const isTime = (date: Date): boolean => !Number.isNaN(date.getTime())

/** Lists the keys of a selection, oldest first. */
export async function readKeys(
  { inbox, redaction }: InboxView,
  act: Act,
  selection: Selection,
): Promise<readonly string[]> {
  if (selection.scope === 'keys') return selection.keys
  if (selection.scope === 'events') return eventKeys(inbox, selection)
  if (act === 'retry') return eventKeys(inbox, { scope: 'events', state: 'retrying', until: selection.until })
  const keys = new Set<string>()
  for await (const deadLetter of eachDeadLetter(inbox)) {
    if (deadLetter.diedAt > selection.until) continue
    if (selection.scope === 'all' || matchesFilter(deadLetter, selection.filter, redaction)) keys.add(deadLetter.key)
  }
  return [...keys].reverse()
}

async function eventKeys(
  inbox: ReadableInbox,
  { state, type, until }: Selection & { readonly scope: 'events' },
): Promise<readonly string[]> {
  const keys: string[] = []
  const asked = { state, ...(type !== undefined && { type }), order: 'oldest', limit: 1_000 } as const
  const pauses = (await inbox.pauses?.list()) ?? []
  for await (const record of eachEvent(inbox, asked))
    if ((record.endedAt ?? record.receivedAt) <= until && pausedFor(record, pauses) === undefined) keys.push(record.key)
  return keys
}
