import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { renamed, toCamelCase, toSnakeCase } from '../../../src/service/client/naming.ts'
import { failureOf, oneWebhook, serve } from './scripted-service.ts'

// biome-ignore lint/suspicious/noExplicitAny: these tests stand for callers without types
type Untyped = any

const key = { apiKeyName: 'a key', ttl: 60, type: 'full_access' }
const url = 'https://example.com/hooks'

describe('Before anything is sent,', () => {
  test.each<[method: string, args: Untyped[], message: RegExp]>([
    ['apiKey.create', [], /parameters must be an object/],
    ['apiKey.create', [null], /parameters must be an object/],
    ['apiKey.create', [[key]], /parameters must be an object/],
    ['apiKey.create', [{ ...key, apiKeyName: '' }], /apiKeyName must be text that is not blank/],
    ['apiKey.create', [{ ...key, apiKeyName: '  ' }], /apiKeyName must be text that is not blank/],
    ['apiKey.create', [{ ...key, apiKeyName: undefined }], /apiKeyName must be/],
    ['apiKey.create', [{ ...key, ttl: 0 }], /ttl must be a whole number from 1 to 2147483647/],
    ['apiKey.create', [{ ...key, ttl: 2_147_483_648 }], /ttl must be/],
    ['apiKey.create', [{ ...key, ttl: 1.5 }], /ttl must be/],
    ['apiKey.create', [{ ...key, ttl: '60' }], /ttl must be/],
    ['apiKey.create', [{ ...key, ttl: Number.NaN }], /ttl must be/],
    ['apiKey.create', [{ ...key, type: 'admin' }], /type must be one of full_access, only_upload/],
    ['apiKey.create', [{ ...key, name: 'n' }], /there is no parameter name; there are apiKeyName, ttl, type/],
    ['apiKey.list', [null], /parameters must be an object/],
    ['apiKey.list', [{ sortBy: 'url' }], /sortBy must be one of created_at, name/],
    ['apiKey.list', [{ limit: 0 }], /limit must be a whole number of at least 1/],
    ['webhook.list', [{ limit: 101 }], /limit must be a whole number from 1 to 100/],
    ['apiKey.update', ['', { apiKeyName: 'n' }], /the id is empty/],
    ['apiKey.update', ['k1'], /parameters must be an object/],
    ['apiKey.update', ['k1', { name: 'n' }], /there is no parameter name; there are apiKeyName/],
    ['apiKey.delete', [], /the id must be a string/],
    ['webhook.create', [{}], /url must be an http or https URL/],
    ['webhook.create', [{ url: 'ftp://example.com' }], /url must be an http or https URL/],
    ['webhook.create', [{ url: 'example.com' }], /url must be an http or https URL/],
    ['webhook.create', [{ url: ` ${url}` }], /url must be an http or https URL/],
    ['webhook.create', [{ url: 'https:example.com' }], /url must be an http or https URL/],
    ['webhook.create', [{ url: 'https://example.com/\n' }], /url must be an http or https URL/],
    ['webhook.create', [{ url: 'https://exam\tple.com' }], /url must be an http or https URL/],
    ['webhook.create', [{ url, name: '' }], /name must be text that is not blank/],
    ['webhook.create', [{ url, encodingFinished: 'true' }], /encodingFinished must be true or false/],
    [
      'webhook.create',
      [{ url, encodingFinnished: true }],
      /no parameter encodingFinnished; there are url, name, fileReceived/,
    ],
    ['webhook.create', [{ url, signal: null }], /there is no parameter signal/],
    ['webhook.get', [7], /the id must be a string/],
    ['webhook.get', ['..'], /the id is empty, or not an id/],
    ['webhook.get', ['\ud800'], /the id is empty, or not an id/],
    ['webhook.list', [{ limit: 0 }], /limit must be a whole number from 1 to 100/],
    ['webhook.list', [{ offset: -1 }], /offset must be a whole number of at least 0/],
    ['webhook.list', [{ offset: 1.5 }], /offset must be/],
    ['webhook.list', [{ orderBy: 'up' }], /orderBy must be one of asc, desc/],
    ['webhook.list', [{ sortBy: 'createdAt' }], /sortBy must be one of created_at, url, name/],
    ['webhook.list', [{ search: 5 }], /search must be text/],
    ['webhook.list', [{ fileReceived: 1 }], /fileReceived must be true or false/],
    ['webhook.update', ['w1', {}], /parameters are empty; there are url, name, fileReceived/],
    ['webhook.update', ['w1', { name: undefined }], /parameters are empty/],
    ['webhook.update', ['w1', { url: 'nowhere' }], /url must be/],
    ['webhook.delete', [''], /the id is empty/],
    ['webhook.check', ['.'], /the id is empty, or not an id/],
  ])('%s(%j) is rejected', async (method, args, message) => {
    const { client, requests } = await serve(oneWebhook())
    const [resource, name] = method.split('.') as [string, string]
    const error = await failureOf('invalid_params', (client as Untyped)[resource][name](...args))
    expect(error.message).toMatch(message)
    expect(error.message.startsWith(`${method}: `)).toBe(true)
    expect(error.path).toMatch(/^\/api\/(api_keys|webhooks)/)
    expect(error.status).toBeUndefined()
    expect(requests).toEqual([])
  })

  test('the error does not contain the value of a parameter', async () => {
    const { client } = await serve(oneWebhook())
    await failureOf('invalid_params', client.webhook.create({ url: 'the-secret' }))
    await failureOf('invalid_params', client.webhook.list({ limit: 'the-secret' as Untyped }))
  })
})

describe('A request', () => {
  const sent = async (call: (client: Awaited<ReturnType<typeof serve>>['client']) => Promise<unknown>) => {
    const { client, requests } = await serve({
      body: { status: 'success', data: { api_key: { id: 'k1', secret: 's1' }, webhook: { id: 'w1' } } },
    })
    await call(client)
    const [{ method, url, headers, body }] = requests as [(typeof requests)[0]]
    return { method, url, type: headers['content-type'], body: body && JSON.parse(body) }
  }
  const json = 'application/json'

  test('has field names in snake_case, and the ttl as a number', async () => {
    expect(
      await sent(({ apiKey }) => apiKey.create({ apiKeyName: ' a key ', ttl: 2_147_483_647, type: 'only_upload' })),
    ).toEqual({
      method: 'POST',
      url: '/api/api_keys',
      type: json,
      body: { api_key_name: 'a key', ttl: 2_147_483_647, type: 'only_upload' },
    })
    expect(
      await sent(({ webhook }) => webhook.create({ url, encodingFinished: true, partialFinished: false })),
    ).toEqual({
      method: 'POST',
      url: '/api/webhooks',
      type: json,
      body: { url, encoding_finished: true, partial_finished: false },
    })
    expect(await sent(({ webhook }) => webhook.update('w1', { name: 'n', fileReceived: true }))).toEqual({
      method: 'PATCH',
      url: '/api/webhooks/w1',
      type: json,
      body: { name: 'n', file_received: true },
    })
    expect(await sent(({ apiKey }) => apiKey.update('k1', { apiKeyName: 'n' }))).toMatchObject({
      method: 'PATCH',
      url: '/api/api_keys/k1',
      body: { api_key_name: 'n' },
    })
  })

  test('has no body if the service expects none', async () => {
    const none = { type: undefined, body: '' }
    expect(await sent(({ webhook }) => webhook.get('w1'))).toEqual({ method: 'GET', url: '/api/webhooks/w1', ...none })
    expect(await sent(({ webhook }) => webhook.delete('w1'))).toMatchObject({ method: 'DELETE', ...none })
    expect(await sent(({ webhook }) => webhook.check('w1'))).toEqual({
      method: 'POST',
      url: '/api/webhooks/check/w1',
      ...none,
    })
  })

  test('for a list has the given parameters in its query, and no others', async () => {
    const { client, requests } = await serve({ body: { data: { webhooks: [], api_keys: [] } } })
    await client.webhook.list({
      search: 'a b&c=é',
      offset: 0,
      limit: 100,
      sortBy: 'url',
      orderBy: 'desc',
      encodingFailed: false,
    })
    await client.webhook.list({ search: undefined })
    await client.webhook.list()
    await client.apiKey.list({ sortBy: 'created_at' })
    expect(requests.map(({ url }) => url)).toEqual([
      '/api/webhooks?search=a+b%26c%3D%C3%A9&offset=0&limit=100&order_by=desc&sort_by=url&encoding_failed=false',
      '/api/webhooks',
      '/api/webhooks',
      '/api/api_keys?sort_by=created_at',
    ])
  })

  test('has the id as one segment of its path, with any characters', async () => {
    const { client, requests } = await serve({ body: { status: 'success' } })
    for (const id of ['a/b', '../api_keys/k1', 'a?b#c', 'é %2e']) await client.webhook.delete(id)
    expect(requests.map(({ url }) => url)).toEqual([
      '/api/webhooks/a%2Fb',
      '/api/webhooks/..%2Fapi_keys%2Fk1',
      '/api/webhooks/a%3Fb%23c',
      '/api/webhooks/%C3%A9%20%252e',
    ])
  })
})

test('A name may have any length, and a page of API keys any size, because the service documents no limit', async () => {
  const { client, requests } = await serve(oneWebhook(), { body: { data: { api_keys: [] } } })
  await client.webhook.create({ url, name: '🎬'.repeat(1_000) })
  await client.apiKey.list({ limit: 1_000 })
  expect(JSON.parse(requests[0]?.body ?? '')).toEqual({ url, name: '🎬'.repeat(1_000) })
  expect(requests[1]?.url).toBe('/api/api_keys?limit=1000')
})

test('Names survive the way to snake_case and back', () => {
  const word = fc.stringMatching(/^[a-z]{1,8}$/)
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 5 }), fc.jsonValue(), (words, value) => {
      const snake = words.join('_')
      expect(toSnakeCase(toCamelCase(snake))).toBe(snake)
      expect(renamed(renamed({ [snake]: value }, toCamelCase), toSnakeCase)).toEqual({ [snake]: value })
    }),
  )
})
