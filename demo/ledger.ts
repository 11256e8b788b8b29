import type { DeliveryRecord } from '../src/service/emulator/sending/sending.ts'
import type { Payload } from '../src/testing/payload.ts'

/** The fields that identify an event. The handlers get them from the wire, so their types are unknown. */
type HandledPayload = { readonly [field in 'type' | 'media_id' | 'emitted_at']?: unknown }

/** Records what was sent and what was handled. Neither record depends on the receiver. */
export interface Ledger {
  /** An entry for each time an event was sent, with the first delivery and its retries. */
  readonly sent: { readonly payload: Payload; readonly deliveries: readonly DeliveryRecord[] }[]
  /** Deliveries that must be rejected, each with the expected status. */
  readonly bad: { readonly what: string; readonly status: number; readonly delivery: DeliveryRecord }[]
  /** The payload of each handling that finished. */
  readonly handled: HandledPayload[]
}

/** Creates an empty ledger. */
export const emptyLedger = (): Ledger => ({ sent: [], bad: [], handled: [] })

/**
 * Describes each problem in a sentence. The list is empty if every event was handled exactly once and every bad
 * delivery was rejected.
 */
export function problems({ sent, bad, handled }: Ledger): string[] {
  const events = new Set(sent.map(({ payload }) => nameOf(payload)))
  const timesHandled = groupBy(handled, nameOf)
  const found: string[] = []
  for (const event of events) {
    const times = timesHandled.get(event)?.length ?? 0
    if (times !== 1) found.push(`${event} was handled ${times} times`)
  }
  for (const event of timesHandled.keys()) {
    if (!events.has(event)) found.push(`${event} was handled but never sent by the service`)
  }
  for (const { payload, deliveries } of sent) {
    const last = deliveries.at(-1)
    if (last?.answer?.status !== 200) found.push(`${nameOf(payload)} was not acknowledged: ${resultOf(last)}`)
  }
  for (const { what, status, delivery } of bad) {
    if (delivery.answer?.status !== status) {
      found.push(`the ${what} delivery should have been rejected with ${status}: ${resultOf(delivery)}`)
    }
  }
  return found
}

/** A row of the summary. A row of bad deliveries has no events and no handlings. */
export interface SummaryRow {
  readonly name: string
  readonly events?: number
  readonly deliveries: number
  readonly rejected: number
  readonly acknowledged: number
  /** The number of acknowledged deliveries that were duplicates. */
  readonly duplicates: number
  readonly handled?: number
}

/** Makes a row for each type of event and for each kind of bad delivery. */
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
  const rejected = deliveries.filter(({ failure }) => failure !== undefined).length
  const duplicates = deliveries.filter(({ answer }) => answer?.body === '{"status":"duplicate"}').length
  return { deliveries: deliveries.length, rejected, acknowledged: deliveries.length - rejected, duplicates }
}

// Not the receiver's event key: the ledger must find the receiver's mistakes.
const nameOf = ({ type, media_id, emitted_at }: HandledPayload): string =>
  `${type} of media ${media_id} at ${emitted_at}`

const resultOf = (delivery: DeliveryRecord | undefined): string =>
  delivery?.failure?.message ?? `answered ${delivery?.answer?.status}`

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const key = keyOf(item)
    groups.set(key, [...(groups.get(key) ?? []), item])
  }
  return groups
}
