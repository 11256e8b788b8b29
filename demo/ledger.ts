import type { DeliveryRecord } from '../src/emulator/sending/sending.ts'
import type { Payload } from '../src/testing/payload.ts'

/** As far as it tells events apart; the handlers get what was on the wire, so nothing is certain of it. */
type HandledPayload = { readonly [field in 'type' | 'media_id' | 'emitted_at']?: unknown }

/** What the sender sent and what the handlers did, each in its own record: neither asks the receiver. */
export interface Ledger {
  /** An entry for each time an event was sent, with its deliveries: the first and its retries. */
  readonly sent: { readonly payload: Payload; readonly deliveries: readonly DeliveryRecord[] }[]
  /** Deliveries that must be refused, and the status to refuse them with. */
  readonly bad: { readonly what: string; readonly status: number; readonly delivery: DeliveryRecord }[]
  /** An entry for each time a handler finished its work, with the payload it was given. */
  readonly handled: HandledPayload[]
}

export const emptyLedger = (): Ledger => ({ sent: [], bad: [], handled: [] })

/** What is wrong, a sentence each; empty when every event was handled exactly once and everything bad was refused. */
export function problems({ sent, bad, handled }: Ledger): string[] {
  const events = new Set(sent.map(({ payload }) => nameOf(payload)))
  const timesHandled = groupBy(handled, nameOf)
  const found: string[] = []
  for (const event of events) {
    const times = timesHandled.get(event)?.length ?? 0
    if (times !== 1) found.push(`${event} was handled ${times} times`)
  }
  for (const event of timesHandled.keys()) {
    if (!events.has(event)) found.push(`${event} was handled and never sent by the service`)
  }
  for (const { payload, deliveries } of sent) {
    const last = deliveries.at(-1)
    if (last?.answer?.status !== 200) found.push(`${nameOf(payload)} was not acknowledged: ${outcomeOf(last)}`)
  }
  for (const { what, status, delivery } of bad) {
    if (delivery.answer?.status !== status) {
      found.push(`the ${what} delivery was to be refused with ${status}: ${outcomeOf(delivery)}`)
    }
  }
  return found
}

/** One line of the summary. What was bad is no event, and no handling is expected of it. */
export interface SummaryRow {
  readonly name: string
  readonly events?: number
  readonly deliveries: number
  readonly refused: number
  readonly acknowledged: number
  /** Those of the acknowledged that were of an event that had been accepted before. */
  readonly duplicates: number
  readonly handled?: number
}

/** A row for each type of event, and one for each kind of bad delivery. */
export function summary({ sent, bad, handled }: Ledger): SummaryRow[] {
  const types = [...groupBy(sent, ({ payload }) => payload.type)].map(([type, sends]) => ({
    name: type,
    events: new Set(sends.map(({ payload }) => nameOf(payload))).size,
    ...answers(sends.flatMap(({ deliveries }) => deliveries)),
    handled: handled.filter((payload) => payload.type === type).length,
  }))
  const kinds = [...groupBy(bad, ({ what }) => what)].map(([what, entries]) => ({
    name: `(${what})`,
    ...answers(entries.map(({ delivery }) => delivery)),
  }))
  return [...types, ...kinds]
}

function answers(deliveries: readonly DeliveryRecord[]) {
  const refused = deliveries.filter(({ failure }) => failure !== undefined).length
  const duplicates = deliveries.filter(({ answer }) => answer?.body === '{"status":"duplicate"}').length
  return { deliveries: deliveries.length, refused, acknowledged: deliveries.length - refused, duplicates }
}

// Not the receiver's event key: the ledger is to find its mistakes.
const nameOf = ({ type, media_id, emitted_at }: HandledPayload): string =>
  `${type} of media ${media_id} at ${emitted_at}`

const outcomeOf = (delivery: DeliveryRecord | undefined): string =>
  delivery?.failure?.message ?? `answered ${delivery?.answer?.status}`

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const key = keyOf(item)
    groups.set(key, [...(groups.get(key) ?? []), item])
  }
  return groups
}
