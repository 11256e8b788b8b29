import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { createClient } from '../../../src/service/client/index.ts'
import { failureOf, oneWebhook, patientClient, type Said, serve } from './scripted-service.ts'

const apiKey = {
  id: 'k1',
  public_key: 'p1',
  secret: 's1',
  truncated_secret: 's…',
  ttl: '2147483647',
  type: 'full_access',
}

const badAnswers: [string, Said, RegExp][] = [
  [
    'HTML',
    { body: '<h1>the-secret</h1>' },
    /answered 200 with a body that is not a JSON object \(is the base URL right\?\)/,
  ],
  ['a list', { body: ['the-secret'] }, /not a JSON object/],
  ['a text', { body: '"the-secret"' }, /not a JSON object/],
  ['nothing', { status: 204, body: '' }, /data is missing/],
  ['no data', { body: { status: 'success', message: 'the-secret' } }, /whose data is missing or of another type/],
  ['no webhook', { body: { data: {} } }, /whose data.webhook is missing/],
  ['a webhook without an id', oneWebhook({ id: undefined }), /whose data.webhook.id is missing/],
  ['a redirect', { status: 302, headers: { location: '/the-secret' } }, /answered 302; redirects are not followed/],
]

describe('An answer', () => {
  test('is in camelCase, and its timestamps are the exact text that was sent', async () => {
    const { client } = await serve(oneWebhook({ last_triggered_at: '2026-03-02T00:00:00.000001Z' }))
    expect(await client.webhook.get('w1')).toEqual({
      status: 'success',
      data: {
        webhook: {
          id: 'w1',
          userId: 'u1',
          name: 'production',
          url: 'https://example.com/hooks',
          fileReceived: false,
          encodingStarted: false,
          partialFinished: false,
          encodingFinished: true,
          encodingFailed: false,
          createdAt: '2026-03-01T10:00:00.123456Z',
          updatedAt: '2026-03-01T10:00:00.123456Z',
          lastTriggeredAt: '2026-03-02T00:00:00.000001Z',
        },
      },
    })
  })

  test.each([['2147483647'], [2_147_483_647]])('has a ttl of %o as a number', async (ttl) => {
    const { client } = await serve({ status: 201, body: { status: 'success', data: { api_key: { ...apiKey, ttl } } } })
    const { data } = await client.apiKey.create({ apiKeyName: 'a key', ttl: 2_147_483_647, type: 'full_access' })
    expect(data.apiKey).toEqual({
      id: 'k1',
      publicKey: 'p1',
      secret: 's1',
      truncatedSecret: 's…',
      ttl: 2_147_483_647,
      type: 'full_access',
    })
  })

  test('may lack every field but the id, treats null as absent, and keeps unknown fields', async () => {
    const { client } = await serve({
      body: {
        data: {
          webhooks: [
            { id: 'w1', name: null },
            { id: 'w2', brand_new: { a_b: 1 } },
          ],
          total: '2',
        },
      },
    })
    const { status, data } = await client.webhook.list()
    expect({ status, data }).toEqual({
      status: 'success',
      data: { webhooks: [{ id: 'w1' }, { id: 'w2', brandNew: { a_b: 1 } }], total: 2 },
    })
    expect(data.webhooks[0]?.name).toBeUndefined()
  })

  test('keeps the secret of a new key, with any types of its other fields', async () => {
    const api_key = { id: 'k1', secret: 's3cret', ttl: 'forever', created_at: 1_774_000_000 }
    const { client } = await serve({ status: 201, body: { status: 'success', data: { api_key } } })
    const { data } = await client.apiKey.create({ apiKeyName: 'n' })
    expect(data.apiKey).toEqual({ id: 'k1', secret: 's3cret', ttl: undefined, createdAt: undefined })
  })

  test('to the creation of a key needs a secret, and no other answer does', async () => {
    const api_key = { id: 'k1', secret: null, public_key: 'the-secret' }
    const { client } = await serve(
      { status: 201, body: { status: 'success', data: { api_key } } },
      { body: { status: 'success', data: { api_keys: [api_key], total: 1 } } },
    )
    const error = await failureOf('bad_answer', client.apiKey.create({ apiKeyName: 'n' }))
    expect(error.message).toContain('whose data.apiKey.secret is missing')
    expect((await client.apiKey.list()).data.apiKeys[0]?.id).toBe('k1')
  })

  test('has an empty list if the service sends null', async () => {
    const { client } = await serve({ body: { status: 'success', data: { api_keys: null, total: 0 } } })
    expect((await client.apiKey.list()).data).toEqual({ apiKeys: [], total: 0 })
  })

  test('to an update or a deletion may have a message or no body at all', async () => {
    const { client } = await serve({ body: { status: 'success', message: 'renamed' } }, (_, response) =>
      response.writeHead(204).end(),
    )
    expect(await client.apiKey.update('k1', { apiKeyName: 'n' })).toEqual({ status: 'success', message: 'renamed' })
    expect(await client.apiKey.delete('k1')).toEqual({ status: 'success' })
  })

  test.each(badAnswers)('that is %s is a bad answer', async (_, answer, message) => {
    const { client, requests } = await serve(answer)
    const error = await failureOf('bad_answer', client.webhook.get('w1'))
    expect(error.message).toMatch(message)
    expect(error).toMatchObject({ method: 'GET', path: '/api/webhooks/w1', status: answer.status ?? 200 })
    expect(requests).toHaveLength(1)
  })

  test('to a check must say that it succeeded', async () => {
    const { client } = await serve(
      { body: { status: 'success', message: 'sent' } },
      (_, response) => response.writeHead(204).end(),
      { status: 202, body: { status: 'fail', message: 'the receiver answered 202' } },
    )
    expect(await client.webhook.check('w1')).toEqual({ status: 'success', message: 'sent' })
    await failureOf('bad_answer', client.webhook.check('w1'))
    expect((await failureOf('rejected', client.webhook.check('w1'))).status).toBe(202)
  })
})

describe('An answer of more than 4 MiB', () => {
  const mebibyte = Buffer.alloc(1_024 * 1_024, 'x')

  test('is a bad answer, and is not read to its end', async () => {
    let written = 0
    const { client, requests } = await serve(async (_, response) => {
      const write = () => {
        if (response.destroyed) return
        written += mebibyte.length
        response.write(mebibyte, write)
      }
      write()
    })
    const error = await failureOf('bad_answer', client.webhook.get('w1'))
    expect(error.message).toBe('webhook.get: the service answered 200 with more than 4 MiB (is the base URL right?)')
    expect(error.status).toBe(200)
    expect(requests).toHaveLength(1)
    expect(written).toBeLessThan(64 * mebibyte.length)
  })

  test('is a bad answer if its Content-Encoding made it small', async () => {
    const { client } = await serve((_, response) => {
      response.setHeader('content-encoding', 'gzip').end(gzipSync(Buffer.alloc(64 * mebibyte.length)))
    })
    expect((await failureOf('bad_answer', client.webhook.get('w1'))).message).toContain('more than 4 MiB')
  })

  test("is a bad answer if a user's fetch returns no stream", async () => {
    const fetch = async () =>
      ({ status: 200, headers: new Headers(), text: async () => 'x'.repeat(5 * mebibyte.length) }) as Response
    const { client } = patientClient({ baseUrl: 'https://api.example.com', fetch })
    expect((await failureOf('bad_answer', client.webhook.get('w1'))).message).toContain('more than 4 MiB')
  })

  test('differs from one of just under 4 MiB, whose characters may be cut between chunks', async () => {
    const name = '映'.repeat(1_390_000)
    const { client } = await serve(oneWebhook({ name }))
    expect((await client.webhook.get('w1')).data.webhook.name === name).toBe(true)
  })
})

describe('A redirect', () => {
  test('is not followed, because it would take the credentials along', async () => {
    const other = await serve(oneWebhook())
    const { client } = await serve({ status: 307, headers: { location: `${other.baseUrl}/api/webhooks/w1` } })
    await failureOf('bad_answer', client.webhook.get('w1'))
    expect(other.requests).toEqual([])
  })
})

describe('A rejected call', () => {
  test.each([
    [400, 'rejected'],
    [401, 'unauthorized'],
    [403, 'forbidden'],
    [404, 'not_found'],
    [409, 'rejected'],
    [429, 'rate_limited'],
    [500, 'server'],
    [503, 'server'],
  ] as const)('with status %d has the code %s', async (status, code) => {
    const { client } = await serve({ status, body: { status: 'fail', message: 'words of the service' } })
    const call = client.webhook.create({ url: 'https://example.com/?token=the-secret', name: 'production' })
    const error = await failureOf(code, call)
    expect(error).toMatchObject({
      method: 'POST',
      path: '/api/webhooks',
      status,
      serviceMessage: 'words of the service',
      message: `webhook.create: the service answered ${status}: words of the service`,
    })
  })

  test('has a path without the query', async () => {
    const { client } = await serve({ status: 400 })
    const error = await failureOf('rejected', client.webhook.list({ search: 'the-secret' }))
    expect(error.path).toBe('/api/webhooks')
  })

  test('has no service message if a proxy answers in HTML', async () => {
    const { client } = await serve({ status: 502, body: '<h1>the-secret</h1>' })
    const error = await failureOf('server', client.webhook.get('w1'))
    expect(error).toMatchObject({ status: 502, message: 'webhook.get: the service answered 502' })
    expect(error.serviceMessage).toBeUndefined()
  })

  test('leaves out the credentials and URLs that the service repeats', async () => {
    const message = 'the-secret-key may not use "https://user:the-secret@example.com/the-secret?token=the-secret".'
    const { client } = await serve({ status: 403, body: { status: 'fail', message } })
    const error = await failureOf('forbidden', client.webhook.get('w1'))
    expect(error.serviceMessage).toBe('[secret] may not use "[url]".')
  })

  test('leaves out a secret that the service writes URL-encoded', async () => {
    const credentials = { publicKey: 'public', secretKey: 'the-secret+/=' }
    const { baseUrl } = await serve({ status: 403, body: { message: `key=${encodeURIComponent('the-secret+/=')}` } })
    const error = await failureOf('forbidden', createClient(credentials, { baseUrl }).webhook.get('w1'))
    expect(error.serviceMessage).toBe('key=[secret]')
  })

  test('has a service message of at most 500 characters', async () => {
    const { client } = await serve({ status: 400, body: { message: 'x'.repeat(100_000) } })
    expect((await failureOf('rejected', client.webhook.get('w1'))).serviceMessage).toBe('x'.repeat(500))
  })
})
