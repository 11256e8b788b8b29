export type { Done } from './answers.ts'
export { ApiError, type ApiErrorCode, type ApiErrorDetails, apiErrorCodes } from './api-error.ts'
export type {
  ApiKey,
  ApiKeyType,
  CreateApiKeyParams,
  CreatedApiKey,
  ListAllApiKeysParams,
  ListApiKeysParams,
  UpdateApiKeyParams,
} from './api-key.ts'
export type { ApiKeys } from './api-keys.ts'
export type { CallOptions } from './call.ts'
export { type Client, createClient } from './client.ts'
export type { ClientCredentials, ClientOptions } from './options.ts'
export { type Registration, type RegistrationReport, registerWebhook } from './register-webhook.ts'
export type { Subscriptions } from './subscriptions.ts'
export { type Watch, type WatchOptions, type WebhookProblem, watchWebhook } from './watch-webhook.ts'
export type {
  CreateWebhookParams,
  ListAllWebhooksParams,
  ListWebhooksParams,
  UpdateWebhookParams,
  Webhook,
} from './webhook.ts'
export type { Webhooks } from './webhooks.ts'
