import { type Span, SpanStatusCode } from '@opentelemetry/api'
import { errorTypeOf } from './attributes.ts'

/** Recorded of an error (characters): some carry a whole page. */
const longestText = 2_000
const longestStack = 8_000

/** Records what the user's code threw. It can be anything, even an object whose properties throw. */
export function recordError(span: Span, error: unknown): void {
  const type = errorTypeOf(error)
  const message = readText(() => (error instanceof Error ? error.message : error), longestText)
  const stack = readText(() => (error instanceof Error ? (error.stack ?? '') : ''), longestStack)
  span.recordException({ name: type, message, stack })
  span.setAttribute('error.type', type)
  span.setStatus({ code: SpanStatusCode.ERROR, message })
}

function readText(read: () => unknown, longest: number): string {
  try {
    const text = String(read())
    return text.length > longest ? `${text.slice(0, longest)}…` : text
  } catch {
    return 'an unprintable error'
  }
}
