import { type ApiKeys, apiKeys } from './api-keys.ts'
import { type Call, createCall } from './call.ts'
import { type ClientCredentials, type ClientOptions, readConfig } from './options.ts'
import { type Webhooks, webhooks } from './webhooks.ts'

/** A client of the service's management API. */
export interface Client {
  readonly apiKey: ApiKeys
  readonly webhook: Webhooks
}

/**
 * Creates a client of the service's management API. Sends nothing until you call a method.
 *
 * ```ts
 * const client = createClient({ publicKey, secretKey }, { baseUrl: 'https://api.example.com' })
 * const { data } = await client.webhook.create({ url, name: 'production', encodingFinished: true })
 * for await (const webhook of client.webhook.listAll()) console.log(webhook.id, webhook.name)
 * ```
 * @throws WebhookError `invalid_option`
 */
export const createClient = (credentials: ClientCredentials, options: ClientOptions): Client =>
  clientOver(createCall(readConfig(credentials, options)))

/** Creates a client that calls the API through `call`. */
export const clientOver = (call: Call): Client => ({ apiKey: apiKeys(call), webhook: webhooks(call) })
