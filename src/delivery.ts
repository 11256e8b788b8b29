import type { MaybePromise } from './internal/maybe-promise.ts'

/** Header lookup as the web's `Headers` does it: any case; several fields of one name are joined with `, `. */
export interface DeliveryHeaders {
  /** Returns the value of a field, or `null` if there is none. */
  get(name: string): string | null
}

/**
 * Reads a body that was not read yet, up to `limit` bytes. It does not trust Content-Length. It returns `too_large`
 * past the limit, and `incomplete` when the sender disconnects before the end.
 */
export type BodyReader = (limit: number) => MaybePromise<Uint8Array | 'too_large' | 'incomplete'>

/** A body that another parser consumed. Its bytes are gone, so only a verifier that needs none can accept it. */
export interface ParsedBody {
  /** The parsed JSON; `undefined` if the body was read and nothing of it is left. */
  readonly parsed: unknown
  /** The fix, for the log: how to leave the body unread in the framework that the delivery comes from. */
  readonly fix?: string | undefined
}

/** One HTTP POST made by the sender, as an adapter hands it over. */
export interface Delivery {
  /** The HTTP method in capitals, such as `POST`. */
  readonly method: string
  /** The target as received: path and query, or an absolute URL. */
  readonly url: string
  /** The header fields as received. A `Headers` fits. */
  readonly headers: DeliveryHeaders
  /** The bytes, a function that reads them, or the value that another parser made of them. */
  readonly body: Uint8Array | BodyReader | ParsedBody
  /** Keeps the runtime alive until the event has been handled, on platforms that end a request with its answer. */
  readonly waitUntil?: ((promise: Promise<unknown>) => void) | undefined
}
