import { randomBytes, randomUUID } from 'node:crypto'

/**
 * Decisions that the service's documentation leaves open. "Observed" marks what the running service did in March 2026.
 * "Our choice" marks the rest, chosen so that a client's mistakes show: `null`, a field given twice and a field of
 * the wrong type are rejected; an unknown field is ignored.
 */

/** Observed: ids are UUIDs. Our choice for the documentation, which says only that they are strings: not UUIDs. */
export const newIdOf = { documented: () => randomBytes(12).toString('hex'), observed: () => `${randomUUID()}` } as const

/** Observed. The documentation spells it in two ways. */
export const defaultWebhookName = 'default-name-webhook'

/** Observed: the maximum number of characters in a name after trimming, counted as code points. */
export const nameLimit = 100

/** Our choice: the maximum size of a request body, in bytes. Sensible requests need a tenth of it. */
export const bodyLimit = 65_536

/** Our choice: the maximum number of webhooks, and of API keys, in a workspace. It bounds memory. */
export const recordLimit = 10_000

/** Observed: the wire names of API keys. The documentation shows only the names that the client uses. */
export const wireNames = { apiKeyName: 'api_key_name', apiKey: 'api_key', apiKeys: 'api_keys' } as const

/**
 * Our choice: the defaults of an API key. Its name is required.
 * Observed: a webhook's event flags default to false. Our choice: an update may clear them all.
 */
export const apiKeyDefaults = { ttl: 2_147_483_647, type: 'full_access' } as const

/** Our choice: the values of an API key's `status`. Observed: the field exists. */
export type ApiKeyStatus = 'active' | 'expired'

/** Our choice: enough of a secret to recognise it, and too little to guess the rest (208 of its 256 bits). */
export const truncateSecret = (secret: string): string => `${secret.slice(0, 4)}...${secret.slice(-4)}`

/** Our choice: `search` matches any part of the name and ignores case. */
export const foundBy = (name: string, search: string): boolean => name.toLowerCase().includes(search.toLowerCase())

/**
 * Requests per minute for each credential. Observed: the service has a limit. Our choice: its value, which is high
 * enough for any test. It is enforced so that you can test how a client handles 429.
 */
export const requestsPerMinute = 6_000

/** Observed: the body of an error. */
export const errorBody = (status: number, message: string) => ({ status: status < 500 ? 'fail' : 'error', message })

/**
 * The status of the answer to `webhook.check` when the test delivery failed. Observed: the receiver's own status, or 400
 * when the receiver did not answer in time. Our choice: also 400 when the receiver's status is not an error (2xx, 3xx)
 * or cannot be sent.
 */
export const failedCheckStatus = (answered = 0): number => (answered >= 400 && answered <= 599 ? answered : 400)
