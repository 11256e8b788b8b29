import { WebhookError } from '../../errors.ts'
import { overdueType } from '../../handlers/expectations.ts'

// Attribute values. Values chosen by a sender or a handler are limited here, in number or length.

export const scope = 'media-webhooks'

/** Stands for any unknown value, as in the conventions. */
const other = '_OTHER'

/** On every span and metric named `messaging.*`. */
export const system = { 'messaging.system': 'media_webhooks' }

/** A receiver's destinations: its event types. Senders can invent types, so unknown ones share one value. */
export class Destinations {
  readonly #known = new Set([overdueType])

  know(types: readonly string[]): void {
    for (const type of types) this.#known.add(type)
  }

  of(type: string): string {
    return this.#known.has(type) ? type : other
  }
}

/** Classifies an error: the code of a `WebhookError`, otherwise its name if that is a word. */
export function errorTypeOf(error: unknown): string {
  try {
    if (error instanceof WebhookError) return error.code
    const name = error instanceof Error ? error.name : ''
    return /^[a-z_$][\w$.]{0,63}$/i.test(name) ? name : other
  } catch {
    // A throwing getter.
    return other
  }
}

/** Error types that a receiver's metrics tell apart. Some libraries make up a name per error. */
const maxErrorTypes = 100

/** Returns an {@link errorTypeOf} with a bounded number of results. */
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

/** A media item's id, cut for spans. */
export const shortenMediaId = (mediaId: string): string => mediaId.slice(0, longestMediaId)
