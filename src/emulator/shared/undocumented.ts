/**
 * What the service's documentation leaves open, decided in this one place. "Seen" is what the running service was seen
 * to do in March 2026; the rest is this emulator's choice, made so that a client's mistake shows: `null` and a field
 * given twice are refused, as a field of another type is; a field that isn't known is ignored.
 */

/** Seen. The documentation spells it in two ways. */
export const defaultWebhookName = 'default-name-webhook'

/** Seen: at most so many characters, after trimming. They are counted as code points. */
export const nameLimit = 100

/** A choice: the longest URL that every client, proxy and database takes. */
export const urlLimit = 2_048

/** A choice: the largest body of a request, in bytes. The largest one that makes sense has a tenth of it. */
export const bodyLimit = 65_536

/** A choice, so that memory stays bounded: how many webhooks, and how many API keys, a workspace has room for. */
export const recordLimit = 10_000

/** Seen: the wire names of API keys, of which the documentation has only the client's. */
export const wireNames = { apiKeyName: 'api_key_name', apiKey: 'api_key', apiKeys: 'api_keys' } as const

/**
 * A choice: what an API key is made of when `ttl` and `type` are left out; its name has to be given.
 * The event flags of a webhook are false where they are left out, and one of them has to be true when it is created
 * (seen); a change may leave none.
 */
export const apiKeyDefaults = { ttl: 2_147_483_647, type: 'full_access' } as const

/** A choice: the words for the `status` of an API key, which was seen to be there. */
export type ApiKeyStatus = 'active' | 'expired'

/** A choice: enough of a secret to recognise it by, and too little to guess the rest (208 of its 256 bits). */
export const truncateSecret = (secret: string): string => `${secret.slice(0, 4)}...${secret.slice(-4)}`

/** A choice: `search` finds what contains it, whatever the case. */
export const foundBy = (name: string, search: string): boolean => name.toLowerCase().includes(search.toLowerCase())

/**
 * Requests a minute, for each credential. That the service counts them was seen, its limit was not: this one is high
 * enough for any test, and enforced so that a client's handling of 429 can be tried.
 */
export const requestsPerMinute = 6_000

/** Seen: the form of an error. */
export const errorBody = (status: number, message: string) => ({ status: status < 500 ? 'fail' : 'error', message })

/**
 * The status code of a test delivery that failed. Seen: 400 without an answer in time, otherwise the receiver's own.
 * Where that one would not tell the client of a failure (2xx, 3xx) or can't be sent, it is 400 too: a choice.
 */
export const failedCheckStatus = (answered = 0): number => (answered >= 400 && answered <= 599 ? answered : 400)
