import { randomBytes, randomUUID } from 'node:crypto'

/**
 * Decisions the service's documentation leaves open. "Observed": what the running service did in March 2026. "Our
 * choice": the rest, made so that a client's mistakes show. `null`, repeated fields and wrong types are rejected;
 * unknown fields are ignored.
 */

/** Observed: ids are UUIDs. The documentation says only that they are strings. Our choice there: not UUIDs. */
export const newIdOf = { documented: () => randomBytes(12).toString('hex'), observed: () => `${randomUUID()}` } as const

/** Observed. The documentation spells it two ways. */
export const defaultWebhookName = 'default-name-webhook'

/** Observed: maximum length of a name after trimming (code points). */
export const nameLimit = 100

/** Our choice: maximum size of a request body (bytes), ten times a sensible one. */
export const bodyLimit = 65_536

/** Our choice: maximum number of webhooks, and of API keys, in a workspace. Bounds memory. */
export const recordLimit = 10_000

/** Observed: the wire names of API keys. The documentation shows only the client's names. */
export const wireNames = { apiKeyName: 'api_key_name', apiKey: 'api_key', apiKeys: 'api_keys' } as const

/**
 * Our choice: the defaults of an API key, except its name, which is required.
 * Observed: a webhook's event flags default to false. Our choice: an update may clear them all.
 */
export const apiKeyDefaults = { ttl: 2_147_483_647, type: 'full_access' } as const

/** Observed: an API key has a `status`. Our choice: its values. */
export type ApiKeyStatus = 'active' | 'expired'

/** Our choice: enough to recognise a secret, too little to guess the rest (208 of its 256 bits). */
export const truncateSecret = (secret: string): string => `${secret.slice(0, 4)}...${secret.slice(-4)}`

/** Our choice: `search` matches any part of a name, in any case. */
export const foundBy = (name: string, search: string): boolean => name.toLowerCase().includes(search.toLowerCase())

/**
 * Requests per minute and credential. Observed: there is a limit. Our choice: its value, high enough for any test, and
 * enforced to let you test how a client handles 429.
 */
export const requestsPerMinute = 6_000

export const errorBody = (status: number, message: string) => ({ status: status < 500 ? 'fail' : 'error', message })

/**
 * The answer's status if the test delivery of `webhook.check` failed. Observed: the receiver's own status, or 400 if
 * the receiver did not answer in time. Our choice: also 400 if the receiver's status is no error (2xx, 3xx) or can't be
 * sent.
 */
export const failedCheckStatus = (answered = 0): number => (answered >= 400 && answered <= 599 ? answered : 400)
