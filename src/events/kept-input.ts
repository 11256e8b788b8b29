import type { Delivery, DeliveryHeaders } from '../receiver/delivery.ts'

// An unreadable delivery is parsed again from what it kept: its body, and whatever `read` and `eventKey` ask of
// deliveries.

/** What an unreadable delivery keeps beside its body. */
export interface KeptInput {
  /** By lower-case name. `null`: asked for, but missing. */
  readonly headers?: Readonly<Record<string, string | null>> | undefined
  /** Without the verifier's token. */
  readonly url?: string | undefined
}

/** Maximum headers kept per function that asks for them. */
const maxHeaders = 32

/** Records the headers that a function asks for. */
export function recordHeaders(names: Set<string>, headers: DeliveryHeaders): DeliveryHeaders {
  const get = (name: string) => {
    if (names.size < maxHeaders) names.add(name.toLowerCase())
    return headers.get(name)
  }
  return { get }
}

/** The deliveries that an `eventKey` function gets. Remembers what it asks for. */
export class KeyInput {
  readonly headers = new Set<string>()
  asksUrl = false
  readonly withoutToken: (url: string) => string

  constructor(withoutToken = (url: string) => url) {
    this.withoutToken = withoutToken
  }

  watch({ method, url, headers, body, waitUntil }: Delivery): Delivery {
    const urlAsked = () => {
      this.asksUrl = true
      return this.withoutToken(url)
    }
    return {
      method,
      headers: recordHeaders(this.headers, headers),
      body,
      waitUntil,
      get url() {
        return urlAsked()
      },
    }
  }
}

export const noHeaders: DeliveryHeaders = { get: () => null }

// Not `Headers`: it throws for values that some servers accept.
export const keptHeaders = ({ headers = {} }: KeptInput = {}): DeliveryHeaders => ({
  get: (name) => valueIn(headers, name.toLowerCase()) ?? null,
})

const valueIn = (headers: Readonly<Record<string, string | null>>, name: string) =>
  Object.hasOwn(headers, name) ? headers[name] : undefined

/** Rebuilds the delivery for `eventKey`. Throws where it asks for what was not kept: `null` would merge events. */
export function keptDelivery({ headers = {}, url }: KeptInput = {}, body: Uint8Array): Delivery {
  const kept = <Value>(value: Value | undefined): Value => {
    if (value === undefined) throw new Error('the unreadable delivery has not kept what eventKey asks for')
    return value
  }
  return {
    method: 'POST',
    headers: { get: (name) => kept(valueIn(headers, name.toLowerCase())) },
    body,
    get url() {
      return kept(url)
    },
  }
}
