import { type Context, propagation, ROOT_CONTEXT, type TextMapGetter } from '@opentelemetry/api'
import type { TraceCarrier } from '../inbox/reading.ts'

// The trace of a delivery on its way through the inbox, in the format of the application's propagator.

/**
 * Makes the carrier that the inbox stores with an event. It is `undefined` if no propagator is registered. The baggage
 * stays out: it belongs to the request, and can be personal.
 */
export function toCarrier(context: Context): TraceCarrier | undefined {
  const carrier: Record<string, string> = {}
  try {
    propagation.inject(propagation.deleteBaggage(context), carrier)
  } catch {
    // A propagator of the application's own.
    return undefined
  }
  return Object.keys(carrier).length === 0 ? undefined : carrier
}

// A stored carrier can come from another version, or from any program that can write to the storage.
const stringsOnly: TextMapGetter<TraceCarrier> = {
  keys: (carrier) => Object.keys(carrier),
  get(carrier, key) {
    const value: unknown = Object.hasOwn(carrier, key) ? carrier[key] : undefined
    return typeof value === 'string' ? value : undefined
  },
}

/** Reads what {@link toCarrier} made. A carrier that cannot be read gives no trace. */
export function fromCarrier(carrier: TraceCarrier | undefined): Context {
  if (typeof carrier !== 'object' || carrier === null) return ROOT_CONTEXT
  try {
    return propagation.deleteBaggage(propagation.extract(ROOT_CONTEXT, carrier, stringsOnly))
  } catch {
    return ROOT_CONTEXT
  }
}
