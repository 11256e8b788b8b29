import { describe, expect, test } from 'vitest'
import { profiles } from '../../../../src/service/emulator/sending/profile.ts'
import { credentials, serveApi } from './served-api.ts'

// As the official Node client sends: Basic authorization beside the key headers, and every number as text.
const sent = {
  authorization: `Basic ${Buffer.from(`${credentials.publicKey}:${credentials.secretKey}`).toString('base64')}`,
  'stream-public-key': credentials.publicKey,
  'stream-secret-key': credentials.secretKey,
  accept: 'application/json',
}

const encodings = {
  json: (fields: object) => ({ type: 'application/json', body: JSON.stringify(fields) }),
  form: (fields: object) => ({
    type: 'application/x-www-form-urlencoded',
    body: new URLSearchParams(
      Object.entries(fields).map(([name, value]): [string, string] => [name, `${value}`]),
    ).toString(),
  }),
}

const cases = profiles.flatMap((profile) => (['json', 'form'] as const).map((encoding) => [profile, encoding] as const))

describe.each(cases)('the official client, profile %s, bodies as %s', (profile, encoding) => {
  test('makes its 21 calls', async () => {
    const { request } = await serveApi({ profile })
    let calls = 0
    const call = async (method: string, path: string, fields?: object) => {
      calls++
      const { type, body } = fields === undefined ? { type: 'application/json' } : encodings[encoding](fields)
      const init = { headers: { ...sent, 'content-type': type }, ...(body !== undefined && { body }) }
      const answer = await request(method, path, init)
      expect(answer, `${method} ${path}`).toMatchObject({
        status: method === 'POST' && !path.startsWith('/webhooks/check') ? 201 : 200,
        body: { status: 'success' },
      })
      return answer.body
    }

    const created = await call('POST', '/api_keys', { api_key_name: 'ci', ttl: '3600', type: 'full_access' })
    expect(created.data.api_key).toMatchObject({ name: 'ci', ttl: profile === 'documented' ? 3_600 : '3600' })
    expect(created.data.api_key.secret).toEqual(expect.any(String))
    const limited = await call('POST', '/api_keys', { api_key_name: 'up', ttl: '2147483647', type: 'only_upload' })
    expect((await call('GET', '/api_keys')).data).toMatchObject({ total: 2 })
    expect((await call('GET', '/api_keys?search=ci')).data.api_keys).toHaveLength(1)
    expect((await call('GET', '/api_keys?offset=1&limit=1')).data.api_keys).toHaveLength(1)
    const [first] = (await call('GET', '/api_keys?sort_by=name&order_by=desc')).data.api_keys
    expect(first.name).toBe('up')
    const { id } = limited.data.api_key
    await call('PATCH', `/api_keys/${id}`, { api_key_name: 'uploads' })
    await call('DELETE', `/api_keys/${id}`)
    expect((await call('GET', '/api_keys?search=uploads')).data.total).toBe(0)

    const flags = { encoding_finished: true, encoding_failed: true, file_received: false }
    const hook = (await call('POST', '/webhooks', { url: 'https://example.org/a', name: 'a', ...flags })).data.webhook
    expect(hook).toMatchObject({ name: 'a', ...flags })
    const other = (await call('POST', '/webhooks', { url: 'https://example.org/b', encoding_started: true })).data
      .webhook
    expect((await call('GET', `/webhooks/${hook.id}`)).data.webhook).toEqual(hook)
    expect((await call('GET', '/webhooks')).data.total).toBe(2)
    expect((await call('GET', '/webhooks?encoding_finished=true')).data.webhooks).toEqual([hook])
    expect((await call('GET', '/webhooks?search=a&offset=0&limit=25')).data.webhooks).toContainEqual(hook)
    expect((await call('GET', '/webhooks?sort_by=url&order_by=desc')).data.webhooks[0].id).toBe(other.id)
    await call('PATCH', `/webhooks/${hook.id}`, { name: 'renamed', partial_finished: true })
    await call('PATCH', `/webhooks/${hook.id}`, { url: 'https://example.org/c' })
    expect((await call('GET', `/webhooks/${hook.id}`)).data.webhook).toMatchObject({
      name: 'renamed',
      url: 'https://example.org/c',
      partial_finished: true,
    })
    await call('POST', `/webhooks/check/${hook.id}`)
    await call('DELETE', `/webhooks/${hook.id}`)
    expect(calls).toBe(21)
  })
})
