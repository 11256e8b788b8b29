import { WebhookError } from '../errors.ts'
import { overdueType } from '../handlers/expectations.ts'

// The values of attributes. Values that a sender or a handler chooses are limited here, in number or in length.

/** The name of the instrumentation's tracer and meter. */
export const scope = 'media-webhooks'

/** Any value that is not one of the known ones, in the word of the conventions. */
const other = '_OTHER'

/** Every span and metric of a `messaging.*` name has it. */
export const system = { 'messaging.system': 'media_webhooks' }

/** The destinations of a receiver: its event types. A sender can invent types, so all that are unknown share one. */
export class Destinations {
  readonly #known = new Set([overdueType])

  know(types: readonly string[]): void {
    for (const type of types) this.#known.add(type)
  }

  of(type: string): string {
    return this.#known.has(type) ? type : other
  }
}

/** The kind of an error: the code of a `WebhookError`, otherwise its name if that is a word. */
export function errorTypeOf(error: unknown): string {
  try {
    if (error instanceof WebhookError) return error.code
    const name = error instanceof Error ? error.name : ''
    return /^[a-z_$][\w$.]{0,63}$/i.test(name) ? name : other
  } catch {
    // A getter that throws.
    return other
  }
}

/**
 * Maximum number of kinds of errors that the metrics of a receiver tell apart: some libraries make up a name for each
 * error.
 */
const maxErrorTypes = 100

/** Returns a function that does what {@link errorTypeOf} does, with a limited number of results. */
export function limitedErrorTypes(): (error: unknown) => string {
  const seen = new Set<string>()
  return (error) => {
    const type = errorTypeOf(error)
    if (!seen.has(type)) {
      if (seen.size >= maxErrorTypes) return other
      seen.add(type)
    }
    return type
  }
}

const longestMediaId = 256

/** The id of a media item as a span shows it. */
export const mediaIdOf = (mediaId: string): string => mediaId.slice(0, longestMediaId)
