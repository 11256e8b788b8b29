import { type Context, propagation, ROOT_CONTEXT, type TextMapGetter } from '@opentelemetry/api'
import type { TraceCarrier } from '../../inbox/reading.ts'

// Carries a delivery's trace through the inbox, in the format of the application's propagator.

/**
 * Creates the carrier that the inbox stores with an event; `undefined` without a registered propagator. Drops the
 * baggage: it belongs to the request and may be personal.
 */
export function toCarrier(context: Context): TraceCarrier | undefined {
  const carrier: Record<string, string> = {}
  try {
    propagation.inject(propagation.deleteBaggage(context), carrier)
  } catch {
    // The application's propagator threw.
    return undefined
  }
  return Object.keys(carrier).length === 0 ? undefined : carrier
}

// A stored carrier may come from another version, or from anything else that writes to the storage.
const stringsOnly: TextMapGetter<TraceCarrier> = {
  keys: (carrier) => Object.keys(carrier),
  get(carrier, key) {
    const value: unknown = Object.hasOwn(carrier, key) ? carrier[key] : undefined
    return typeof value === 'string' ? value : undefined
  },
}

/** Reads a carrier from {@link toCarrier}. An unreadable one gives no trace. */
export function fromCarrier(carrier: TraceCarrier | undefined): Context {
  if (typeof carrier !== 'object' || carrier === null) return ROOT_CONTEXT
  try {
    return propagation.deleteBaggage(propagation.extract(ROOT_CONTEXT, carrier, stringsOnly))
  } catch {
    return ROOT_CONTEXT
  }
}
