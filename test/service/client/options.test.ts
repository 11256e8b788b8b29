import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { createClient } from '../../../src/service/client/index.ts'
import { untyped } from '../../support/untyped.ts'
import { keyPair, oneWebhook, serve } from './scripted-service.ts'

const invalid = (message: RegExp) =>
  expect.objectContaining({ name: 'WebhookError', code: 'invalid_option', message: expect.stringMatching(message) })

const baseUrl = 'https://api.example.com'
const build = (credentials: unknown, options: unknown) => () => createClient(untyped(credentials), untyped(options))

describe('createClient throws invalid_option', () => {
  test.each([
    [undefined, /publicKey/],
    [{}, /publicKey must be a string \(is an environment variable unset\?\)/],
    [{ publicKey: 'p' }, /secretKey must be a string/],
    [{ publicKey: 'p', secretKey: '' }, /secretKey must be visible ASCII characters \(is it empty/],
    [{ publicKey: 'p', secretKey: 'the-secret\n' }, /secretKey .*newline at its end/],
    [{ publicKey: 'p', secretKey: 'the-secret-ключ' }, /secretKey must be visible ASCII/],
    [{ accessToken: 'the-secret token' }, /accessToken must be visible ASCII/],
    [{ publicKey: 'p', secretKey: 's', token: 't' }, /there is no option token; there are publicKey, secretKey/],
    [{ accessToken: 'the-secret', secret: 't' }, /there is no option secret; there are accessToken/],
  ])('for the credentials %j', (credentials, message) => {
    expect(build(credentials, { baseUrl })).toThrow(invalid(message))
    expect(build(credentials, { baseUrl })).not.toThrow(/the-secret/)
  })

  test.each([
    [undefined, /must be the address of the service/],
    ['api.example.com', /must be an http or https URL/],
    ['ftp://api.example.com', /must be an http or https URL/],
    ['https://user:the-secret@api.example.com', /must not contain credentials/],
    ['https://api.example.com/?key=the-secret', /must not have a query/],
    ['https://api.example.com/api', /must not end with \/api/],
    ['https://api.example.com/api/', /must not end with \/api/],
  ])('for the baseUrl %s', (baseUrl, message) => {
    expect(build(keyPair, { baseUrl })).toThrow(invalid(message))
    expect(build(keyPair, { baseUrl })).not.toThrow(/the-secret/)
  })

  test.each([
    [{ timeoutMs: 0 }, /timeoutMs must be a whole number from 1 to 2147483647/],
    [{ timeoutMs: '10s' }, /timeoutMs must be a whole number/],
    [{ retries: -1 }, /retries must be a whole number from 0 to 10/],
    [{ retries: 1.5 }, /retries must be a whole number/],
    [{ fetch: 'fetch' }, /fetch must be a function/],
    [{ timeout: 5 }, /there is no option timeout; there are baseUrl, timeoutMs, retries, fetch/],
  ])('for the options %o', (options, message) => {
    expect(build(keyPair, { baseUrl, ...options })).toThrow(invalid(message))
  })

  test('without options', () => {
    expect(build(keyPair, undefined)).toThrow(invalid(/baseUrl must be the address of the service/))
  })
})

describe('A client', () => {
  const ask = async (credentials: Parameters<typeof createClient>[0], baseUrl: (url: string) => string = String) => {
    const service = await serve(oneWebhook())
    await createClient(credentials, { baseUrl: baseUrl(service.baseUrl) }).webhook.get('w1')
    return service.requests[0]
  }

  test('authenticates with the headers of a key pair', async () => {
    const request = await ask(keyPair)
    expect(request?.headers).toMatchObject({
      'stream-public-key': 'the-public-key',
      'stream-secret-key': 'the-secret-key',
      accept: 'application/json',
    })
    expect(request?.headers).not.toHaveProperty('authorization')
    expect(request?.headers).not.toHaveProperty('content-type')
  })

  test('authenticates with a bearer token', async () => {
    const request = await ask({ accessToken: 'the-secret-token' })
    expect(request?.headers.authorization).toBe('Bearer the-secret-token')
    expect(request?.headers).not.toHaveProperty('stream-secret-key')
  })

  test('uses the key pair if it is given both', async () => {
    const request = await ask({ ...keyPair, accessToken: 'the-secret-token' })
    expect(request?.headers['stream-secret-key']).toBe('the-secret-key')
    expect(request?.headers).not.toHaveProperty('authorization')
  })

  test.each([
    ['a slash at its end', (url: string) => `${url}/`, '/api/webhooks/w1'],
    ['a path of its own', (url: string) => `${url}/media//`, '/media/api/webhooks/w1'],
  ])('takes a base URL with %s', async (_, baseUrl, path) => {
    expect((await ask(keyPair, baseUrl))?.url).toBe(path)
  })

  test('uses the fetch it is given, and by default the global one at the time of the call', async () => {
    const answer = () => Response.json(oneWebhook().body)
    const asked: string[] = []
    const client = createClient(keyPair, {
      baseUrl,
      async fetch(url) {
        asked.push(url)
        return answer()
      },
    })
    await client.webhook.get('w1')
    expect(asked).toEqual(['https://api.example.com/api/webhooks/w1'])

    const later = createClient(keyPair, { baseUrl })
    const original = globalThis.fetch
    globalThis.fetch = async () => answer()
    try {
      expect((await later.webhook.get('w1')).data.webhook.id).toBe('w1')
    } finally {
      globalThis.fetch = original
    }
  })

  test('shows no secret when it is inspected', () => {
    for (const credentials of [keyPair, { accessToken: 'the-secret-token' }]) {
      const client = createClient(credentials, { baseUrl })
      expect(inspect(client, { depth: 9, showHidden: true }) + JSON.stringify(client)).not.toContain('the-secret')
    }
  })
})
