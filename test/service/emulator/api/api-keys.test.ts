import { describe, expect, test } from 'vitest'
import { profiles } from '../../../../src/service/emulator/sending/profile.ts'
import { aUuid, keyPair, serveApi } from './served-api.ts'

describe('creating an API key', () => {
  test('answers 201 with the whole key, including its secret, as observed', async () => {
    const { call } = await serveApi({ profile: 'observed' })
    const { status, body } = await call('POST', '/api_keys', { api_key_name: ' ci ', ttl: '3600', type: 'only_upload' })
    expect(status).toBe(201)
    expect(body).toEqual({
      status: 'success',
      data: {
        api_key: {
          id: expect.stringMatching(/^[0-9a-f-]{36}$/),
          name: 'ci',
          public_key: expect.stringMatching(/^[\w-]{22}$/),
          secret: expect.stringMatching(/^[\w-]{43}$/),
          truncated_secret: expect.stringMatching(/^[\w-]{4}\.{3}[\w-]{4}$/),
          ttl: '3600',
          type: 'only_upload',
          status: 'active',
          created_at: '2026-03-01T00:00:00.000000Z',
          updated_at: '2026-03-01T00:00:00.000000Z',
          expired_at: '2026-03-01T01:00:00.000000Z',
          last_requested_at: null,
        },
      },
    })
    const { secret, truncated_secret } = body.data.api_key
    expect(truncated_secret).toBe(`${secret.slice(0, 4)}...${secret.slice(-4)}`)
  })

  test('answers 201 with the documented fields, the lifetime as a number', async () => {
    const { apiKey } = await serveApi()
    expect(await apiKey({ api_key_name: ' ci ', ttl: 3_600, type: 'only_upload' })).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{24}$/),
      name: ' ci ',
      public_key: expect.any(String),
      secret: expect.any(String),
      truncated_secret: expect.any(String),
      ttl: 3_600,
      type: 'only_upload',
      created_at: '2026-03-01T00:00:00.000000Z',
      updated_at: '2026-03-01T00:00:00.000000Z',
      expired_at: '2026-03-01T01:00:00.000000Z',
    })
  })

  test.each([
    ['documented', {}, 2_147_483_647, '2094-03-19T03:14:07.000000Z'],
    ['documented', { ttl: 1 }, 1, '2026-03-01T00:00:01.000000Z'],
    ['documented', { ttl: '0060' }, 60, '2026-03-01T00:01:00.000000Z'],
    ['documented', { ttl: 2_147_483_647 }, 2_147_483_647, '2094-03-19T03:14:07.000000Z'],
    ['observed', {}, '2147483647', '2094-03-19T03:14:07.000000Z'],
    ['observed', { ttl: 1 }, '1', '2026-03-01T00:00:01.000000Z'],
    ['observed', { ttl: '0060' }, '60', '2026-03-01T00:01:00.000000Z'],
    ['observed', { ttl: 2_147_483_647 }, '2147483647', '2094-03-19T03:14:07.000000Z'],
  ] as const)(
    'with the profile %s takes %o, and returns the lifetime as %o',
    async (profile, fields, ttl, expired_at) => {
      const { apiKey } = await serveApi({ profile })
      expect(await apiKey(fields)).toMatchObject({ ttl, expired_at, type: 'full_access' })
    },
  )

  test.each(['', '0', '1.5', 'soon', '-1', 1.5, 0, true])('rejects the lifetime %o with both profiles', async (ttl) => {
    for (const profile of profiles) {
      const { call } = await serveApi({ profile })
      const { status, body } = await call('POST', '/api_keys', { api_key_name: 'ci', ttl })
      expect([status, body.message]).toEqual([400, 'body.ttl must be a whole number from 1 to 2147483647'])
    }
  })

  test.each(profiles)('accepts a form with the profile %s', async (profile) => {
    const { request, call } = await serveApi({ profile })
    const headers = { authorization: 'Bearer account-token' }
    const body = new URLSearchParams({ api_key_name: 'a form', ttl: '60', type: 'full_access' })
    const created = await request('POST', '/api_keys', { headers, body })
    expect(created.body.data.api_key).toMatchObject({ name: 'a form', type: 'full_access' })
    expect(Number(created.body.data.api_key.ttl)).toBe(60)

    const rename = new URLSearchParams({ api_key_name: 'renamed' })
    await request('PATCH', `/api_keys/${created.body.data.api_key.id}`, { headers, body: rename })
    expect((await call('GET', '/api_keys')).body.data.api_keys[0].name).toBe('renamed')
  })

  test('is rejected when there are 10,000', async () => {
    const { call, apiKey, workspace } = await serveApi()
    const { id } = await apiKey()
    for (let made = 1; made < 10_000; made++) workspace.apiKeys.create({ name: 'x', ttl: 60, type: 'full_access' })
    const { status, body } = await call('POST', '/api_keys', { api_key_name: 'x' })
    expect([status, body.message]).toEqual([400, 'the limit of 10000 api-keys is reached: delete some first'])
    await call('DELETE', `/api_keys/${id}`)
    expect((await call('POST', '/api_keys', { api_key_name: 'x' })).status).toBe(201)
  })
})

describe('an API key', () => {
  test('is listed without its secret, with the time of its last use and its status, as observed', async () => {
    const { call, apiKey, pass } = await serveApi({ profile: 'observed' })
    const { secret, ...listed } = await apiKey({ ttl: 10 })
    const list = async () => (await call('GET', '/api_keys')).body
    expect(await list()).toEqual({ status: 'success', data: { api_keys: [listed], total: 1 } })

    pass(9.5)
    expect((await call('GET', '/webhooks', undefined, keyPair(listed.public_key, secret))).status).toBe(200)
    pass(0.5)
    const last_requested_at = '2026-03-01T00:00:09.500000Z'
    expect((await list()).data.api_keys).toEqual([{ ...listed, last_requested_at, status: 'expired' }])
  })

  test('is listed without its secret, in a page of any size that is asked for', async () => {
    const { call, workspace } = await serveApi()
    for (let made = 0; made < 150; made++) workspace.apiKeys.create({ name: 'x', ttl: 60, type: 'full_access' })
    const { data } = (await call('GET', '/api_keys?limit=1000')).body
    expect([data.api_keys.length, data.total]).toEqual([150, 150])
    expect(data.api_keys[0]).not.toHaveProperty('secret')
  })

  test('can be renamed', async () => {
    const { call, apiKey, pass } = await serveApi({ profile: 'observed' })
    const { secret, ...key } = await apiKey({ api_key_name: 'before' })
    pass(1)
    const { status, body } = await call('PATCH', `/api_keys/${key.id}`, { api_key_name: ' after ' })
    expect([status, body]).toEqual([200, { status: 'success', message: 'the API key was renamed' }])
    const renamed = { ...key, name: 'after', updated_at: '2026-03-01T00:00:01.000000Z' }
    expect((await call('GET', '/api_keys')).body.data.api_keys).toEqual([renamed])
  })

  test('works until it is deleted, even for its own deletion', async () => {
    const { call, apiKey } = await serveApi()
    const { id, public_key, secret } = await apiKey()
    const own = keyPair(public_key, secret)
    const { status, body } = await call('DELETE', `/api_keys/${id}`, undefined, own)
    expect([status, body]).toEqual([200, { status: 'success', message: 'the API key was deleted' }])
    expect((await call('GET', '/api_keys', undefined, own)).status).toBe(401)
    expect((await call('GET', '/api_keys')).body.data).toEqual({ api_keys: [], total: 0 })
    expect((await call('DELETE', `/api_keys/${id}`)).status).toBe(404)
  })

  test('notifies of its creation, use, renaming and deletion', async () => {
    const { call, apiKey, changes } = await serveApi()
    const told: unknown[] = []
    changes.subscribe((change) => told.push(change))
    const { id, public_key, secret } = await apiKey()
    await call('GET', '/webhooks', undefined, keyPair(public_key, secret))
    await call('PATCH', `/api_keys/${id}`, { api_key_name: 'x' })
    await call('DELETE', `/api_keys/${id}`)
    await call('DELETE', `/api_keys/${aUuid}`)
    expect(told).toEqual(Array(4).fill({ kind: 'api-keys', id }))
  })
})
