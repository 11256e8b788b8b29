import { describe, expectTypeOf, test } from 'vitest'
import type { Receiver } from '../../src/index.ts'
import {
  ApiError,
  type ApiErrorCode,
  type ApiKey,
  type Client,
  type CreatedApiKey,
  createClient,
  type Done,
  type RegistrationReport,
  registerWebhook,
  type Watch,
  type Webhook,
  type WebhookProblem,
  watchWebhook,
} from '../../src/service/client/index.ts'
import type { Credentials } from '../../src/service/emulator/index.ts'

const baseUrl = 'https://api.example.com'
const url = 'https://example.com/hooks'
declare const client: Client
declare const receiver: Receiver

describe('createClient', () => {
  test('takes a key pair, a token, or the credentials of the emulator', () => {
    expectTypeOf(createClient({ publicKey: 'p', secretKey: 's' }, { baseUrl })).toEqualTypeOf<Client>()
    createClient({ accessToken: 't' }, { baseUrl, timeoutMs: 5_000, retries: 0, fetch })
    createClient({} as Credentials, { baseUrl })
  })

  test('does not compile with wrong credentials', () => {
    // @ts-expect-error the secret key is missing
    createClient({ publicKey: 'p' }, { baseUrl })
    // @ts-expect-error the public key is missing
    createClient({ accessToken: 't', secretKey: 's' }, { baseUrl })
    // @ts-expect-error credentials are missing
    createClient({}, { baseUrl })
    // @ts-expect-error an environment variable may be unset
    createClient({ accessToken: process.env['ACCESS_TOKEN'] }, { baseUrl })
    // @ts-expect-error no such credential
    createClient({ apiKey: 'k' }, { baseUrl })
  })

  test('does not compile with wrong options', () => {
    // @ts-expect-error the base URL is missing
    createClient({ accessToken: 't' }, {})
    // @ts-expect-error options are required
    createClient({ accessToken: 't' })
    // @ts-expect-error ms are a number
    createClient({ accessToken: 't' }, { baseUrl, timeoutMs: '10s' })
    // @ts-expect-error no such option
    createClient({ accessToken: 't' }, { baseUrl, timeout: 10 })
  })
})

describe('the methods', () => {
  test('return the answer of the service, in camelCase', () => {
    expectTypeOf(client.apiKey.create).returns.resolves.toEqualTypeOf<{
      status: string
      data: { apiKey: CreatedApiKey }
    }>()
    expectTypeOf<CreatedApiKey['secret']>().toEqualTypeOf<string>()
    expectTypeOf<ApiKey['secret']>().toEqualTypeOf<string | undefined>()
    expectTypeOf(client.apiKey.list).returns.resolves.toEqualTypeOf<{
      status: string
      data: { apiKeys: ApiKey[]; total?: number | undefined }
    }>()
    expectTypeOf(client.webhook.get).returns.resolves.toEqualTypeOf<{ status: string; data: { webhook: Webhook } }>()
    expectTypeOf(client.webhook.check).returns.resolves.toEqualTypeOf<Done>()
    expectTypeOf<Webhook['id']>().toEqualTypeOf<string>()
    expectTypeOf<Webhook['createdAt']>().toEqualTypeOf<string | undefined>()
    expectTypeOf<Webhook['encodingFinished']>().toEqualTypeOf<boolean | undefined>()
    expectTypeOf<ApiKey['ttl']>().toEqualTypeOf<number | undefined>()
  })

  test('take a signal last', () => {
    const options = { signal: new AbortController().signal }
    client.apiKey.list({}, options)
    client.webhook.list(undefined, options)
    client.webhook.get('w1', options)
    client.webhook.update('w1', { name: 'n' }, options)
    client.webhook.listAll({}, options)
    registerWebhook(client, receiver, { url }, options)
    // @ts-expect-error the signal is not a parameter
    client.webhook.list(options)
  })

  test('iterate over a list', async () => {
    for await (const webhook of client.webhook.listAll({ encodingFinished: true })) {
      expectTypeOf(webhook).toEqualTypeOf<Webhook>()
    }
    for await (const apiKey of client.apiKey.listAll()) expectTypeOf(apiKey).toEqualTypeOf<ApiKey>()
    // @ts-expect-error every page is read
    client.webhook.listAll({ offset: 25 })
  })

  test('do not compile with wrong parameters', () => {
    // @ts-expect-error the name is missing
    client.apiKey.create({ ttl: 60, type: 'full_access' })
    // @ts-expect-error seconds are a number
    client.apiKey.create({ apiKeyName: 'n', ttl: '60', type: 'full_access' })
    // @ts-expect-error no such type of key
    client.apiKey.create({ apiKeyName: 'n', ttl: 60, type: 'admin' })
    // @ts-expect-error the field is called apiKeyName
    client.apiKey.update('k1', { name: 'n' })
    // @ts-expect-error the id is missing
    client.apiKey.delete()
    // @ts-expect-error the URL is missing
    client.webhook.create({ encodingFinished: true })
    // @ts-expect-error a typo
    client.webhook.create({ url, encodingFinnished: true })
    // @ts-expect-error the client uses camelCase
    client.webhook.create({ url, encoding_finished: true })
    // @ts-expect-error keys have no URL to sort by
    client.apiKey.list({ sortBy: 'url' })
    // @ts-expect-error asc or desc
    client.webhook.list({ orderBy: 'ascending' })
    // @ts-expect-error an id comes first
    client.webhook.update({ url })
    // @ts-expect-error the result is read-only
    client.webhook.get('w1').then(({ data }) => (data.webhook.name = 'n'))
  })
})

describe('registerWebhook', () => {
  test('takes a client, a receiver and a URL', () => {
    expectTypeOf(registerWebhook(client, receiver, { url, name: 'n' })).resolves.toEqualTypeOf<RegistrationReport>()
    expectTypeOf<RegistrationReport['action']>().toEqualTypeOf<'created' | 'updated' | 'unchanged'>()
    // @ts-expect-error the URL is missing
    registerWebhook(client, receiver, { name: 'n' })
    // @ts-expect-error the handlers decide which events
    registerWebhook(client, receiver, { url, encodingFinished: true })
    // @ts-expect-error the receiver is missing
    registerWebhook(client, { url })
  })
})

describe('ApiError', () => {
  test('has one of a closed set of codes', () => {
    const error = new ApiError('not_found', 'no', { method: 'GET', path: '/' })
    expectTypeOf(error.code).toEqualTypeOf<ApiErrorCode>()
    expectTypeOf(error.status).toEqualTypeOf<number | undefined>()
    // @ts-expect-error there is no such code
    if (error.code === 'teapot') return
  })
})

describe('watchWebhook', () => {
  test('takes the webhook of a registration, and tells problems', async () => {
    const { data } = await registerWebhook(client, receiver, { url })
    const onProblem = (problem: WebhookProblem) => expectTypeOf(problem.solved).toBeBoolean()
    expectTypeOf(watchWebhook({ client, receiver, webhook: data.webhook, onProblem })).toEqualTypeOf<Watch>()
    watchWebhook({ client, receiver, webhook: { id: 'w1', url }, everyMs: 60_000 })
  })

  test('does not compile without a webhook', () => {
    // @ts-expect-error the webhook is missing
    watchWebhook({ client, receiver })
  })
})
