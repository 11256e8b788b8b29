import { WebhookError } from '../errors.ts'
import { contentHeaders } from '../internal/content-headers.ts'
import type { MaybePromise } from '../internal/maybe-promise.ts'
import { within } from '../internal/timers.ts'
import type { Acknowledgement, Delivery, DeliveryHeaders } from '../receiver/delivery.ts'
import { type JsonObject, withoutPrototypes } from './json.ts'

/** A request that may be a handshake, by which a service makes sure that the URL is yours. */
export interface ChallengeRequest {
  /** `GET` or `POST`. */
  readonly method: string
  /** Path and query, or an absolute URL. */
  readonly url: string
  readonly query: URLSearchParams
  readonly headers: DeliveryHeaders
  /** The payload of a POST, verified. Absent in a GET, and in a POST whose body was not read yet. */
  // biome-ignore lint/suspicious/noExplicitAny: a sender's JSON
  readonly payload?: any
}

/** Answers a handshake: with text, or with an object as JSON. `undefined` or `null`: the request is none. */
export type Challenge = (request: ChallengeRequest) => MaybePromise<string | object | null | undefined>

/** What answering handshakes needs of the receiver. */
export interface HandshakeOptions {
  /** Rejects if the delivery can be verified without its body, and is forged. */
  verify(delivery: Delivery): Promise<void>
  /** @throws WebhookError `malformed` */
  parse(body: Uint8Array, headers: DeliveryHeaders): JsonObject
  readonly timeoutMs: number
}

/** Asks the application's `challenge` whether requests are handshakes. Returns no answer to one that is none. */
export class Handshakes {
  readonly #challenge: Challenge
  readonly #options: HandshakeOptions

  constructor(challenge: Challenge, options: HandshakeOptions) {
    this.#challenge = challenge
    this.#options = options
  }

  /** Answers a GET, or a POST with its handshake in the URL. */
  async answerRequest(delivery: Delivery): Promise<Acknowledgement | undefined> {
    if (delivery.method !== 'GET' && delivery.method !== 'POST') return undefined
    await this.#options.verify(delivery)
    return this.#answer(requestOf(delivery))
  }

  /** Answers a verified POST with its handshake in the payload. */
  async answerPayload(delivery: Delivery, body: Uint8Array): Promise<Acknowledgement | undefined> {
    let payload: unknown
    try {
      payload = withoutPrototypes(this.#options.parse(body, delivery.headers))
    } catch {
      // Answered as malformed later.
      return undefined
    }
    return this.#answer({ ...requestOf(delivery), payload })
  }

  /** @throws WebhookError `unavailable` if the application takes too long, `internal`, or what it throws */
  async #answer(request: ChallengeRequest): Promise<Acknowledgement | undefined> {
    const asking = (async () => this.#challenge(request))()
    const found = await within(this.#options.timeoutMs, asking, challengeLate)
    if (found === undefined || found === null) return undefined
    if (typeof found === 'string') return answerWith('text/plain; charset=utf-8', found)
    if (typeof found === 'object') return answerWith('application/json', JSON.stringify(found))
    const cause = 'challenge must return a string, an object or undefined'
    throw new WebhookError('internal', 'the receiver failed', { cause })
  }
}

function challengeLate(): never {
  throw new WebhookError('unavailable', 'challenge did not answer in time')
}

const requestOf = ({ method, url, headers }: Delivery): ChallengeRequest => ({
  method,
  url,
  headers,
  query: new URLSearchParams(/\?([^#]*)/.exec(url)?.[1]),
})

/** It may repeat anybody's text: no browser must take it for a page, and no cache keep it. */
function answerWith(type: string, body: string): Acknowledgement {
  const headers = {
    ...contentHeaders(type, body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  }
  return { outcome: 'challenge', status: 200, headers, body }
}
