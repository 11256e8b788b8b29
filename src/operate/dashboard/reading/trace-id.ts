import type { TraceCarrier } from '../../../inbox/reading.ts'

/** Parses the trace id out of `traceparent`. */
export function readTraceId(trace: TraceCarrier | undefined): string | undefined {
  const header = Object.entries(trace ?? {}).find(([name]) => name.toLowerCase() === 'traceparent')?.[1]
  return /^[\da-f]{2}-([\da-f]{32})-[\da-f]{16}-[\da-f]{2}/.exec(header ?? '')?.[1]
}
