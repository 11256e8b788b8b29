import { describe, expect, test } from 'vitest'
import { type Profile, profiles } from '../../../../src/service/emulator/sending/profile.ts'
import { account, serveApi } from './served-api.ts'

const webhook = { url: 'https://example.org/hooks', encoding_finished: true }
const notAUrl = 'body.url must be an http or https URL'
const notAFlag = (flag: string) => `body.${flag} must be true or false`
const noEvent =
  'body must select an event: set one of file_received, encoding_started, partial_finished, encoding_finished, ' +
  'encoding_failed to true'

const wrongBodies = [
  ['null', 'body must be an object'],
  ['[]', 'body must be an object'],
  ['"text"', 'body must be an object'],
  ['', 'the body is missing'],
  ['{', 'the body is not JSON'],
  ["{'url':'x'}", 'the body is not JSON'],
  ['{"url":"\xff"}', 'the body is not UTF-8'],
] as const

const wrongNames = [
  [1, 'must be a string'],
  [null, 'must be a string'],
] as const

const longNames = [
  ['x'.repeat(101), 'must have at most 100 characters'],
  ['🎬'.repeat(101), 'must have at most 100 characters'],
] as const

const wrongUrls = [
  [{ url: null }, 'body.url must be a string'],
  [{ url: 1 }, 'body.url must be a string'],
  [{ url: ['https://example.org'] }, 'body.url must be a string'],
  [{ url: '' }, notAUrl],
  [{ url: 'example.org/hooks' }, notAUrl],
  [{ url: '/hooks' }, notAUrl],
  [{ url: 'ftp://example.org' }, notAUrl],
  [{ url: 'javascript:alert(1)' }, notAUrl],
  [{ url: 'http:example.org' }, notAUrl],
  [{ url: 'https://' }, notAUrl],
  [{ url: 'https://exa mple.org' }, notAUrl],
] as const

const wrongFlags = [
  [{ encoding_finished: 'true' }, notAFlag('encoding_finished')],
  [{ file_received: 1 }, notAFlag('file_received')],
  [{ partial_finished: null }, notAFlag('partial_finished')],
] as const

/** Sends each body, and expects it to be rejected with the message beside it. */
async function expectRefusals(
  profile: Profile,
  method: string,
  path: string,
  table: readonly (readonly [unknown, string])[],
) {
  const { request } = await serveApi({ profile })
  for (const [given, message] of table) {
    const body = typeof given === 'string' ? Buffer.from(given, 'latin1') : JSON.stringify(given)
    const answer = await request(method, path, { body, headers: { ...account, 'content-type': 'application/json' } })
    expect([answer.status, answer.body], String(given)).toEqual([400, { status: 'fail', message }])
  }
}

describe.each(profiles)(
  'with the profile %s, a body is rejected with 400 and a message that names the field',
  (profile) => {
    const rejectedNames = profile === 'observed' ? [...wrongNames, ...longNames] : wrongNames

    test('when a webhook is created', async () => {
      await expectRefusals(profile, 'POST', '/webhooks', [
        ...wrongBodies,
        [{ encoding_finished: true }, 'body.url must be a string'],
        ...wrongUrls.map(([fields, message]) => [{ ...webhook, ...fields }, message] as const),
        ...wrongFlags.map(([fields, message]) => [{ ...webhook, ...fields }, message] as const),
        ...rejectedNames.map(([name, message]) => [{ ...webhook, name }, `body.name ${message}`] as const),
      ])
    })

    test('when a webhook is changed', async () => {
      const path = '/webhooks/00000000-0000-0000-0000-000000000001'
      await expectRefusals(profile, 'PATCH', path, [
        ...wrongBodies,
        ...wrongUrls,
        ...wrongFlags,
        ...rejectedNames.map(([name, message]) => [{ name }, `body.name ${message}`] as const),
        [{ name: ' ' }, 'body.name must not be blank'],
      ])
    })

    const wrongKeyNames = [
      [{}, 'body.api_key_name must be a string'],
      [{ name: 'x' }, 'body.api_key_name must be a string'],
      [{ api_key_name: '' }, 'body.api_key_name must not be blank'],
      ...rejectedNames.map(([name, message]) => [{ api_key_name: name }, `body.api_key_name ${message}`] as const),
    ] as const

    test('when an API key is created', async () => {
      const wrongTtl = 'body.ttl must be a whole number from 1 to 2147483647'
      const wrongType = 'body.type must be one of full_access, only_upload'
      const numbers = [0, -1, 1.5, 2_147_483_648, 1e300, true, null, [], {}]
      const texts = ['', '0', '2147483648', '1e3', ' 5', '0x10', 'soon']
      await expectRefusals(profile, 'POST', '/api_keys', [
        ...wrongBodies,
        ...wrongKeyNames,
        ...[...numbers, ...texts].map((ttl) => [{ api_key_name: 'x', ttl }, wrongTtl] as const),
        ...['', 'admin', 'FULL_ACCESS', null, 1].map((type) => [{ api_key_name: 'x', type }, wrongType] as const),
      ])
    })

    test('when an API key is renamed', async () => {
      const path = '/api_keys/00000000-0000-0000-0000-000000000001'
      await expectRefusals(profile, 'PATCH', path, [...wrongBodies, ...wrongKeyNames])
    })
  },
)

test('a webhook without events is rejected, as observed', async () => {
  await expectRefusals('observed', 'POST', '/webhooks', [
    [{ url: webhook.url }, noEvent],
    [{ url: webhook.url, encoding_finished: false }, noEvent],
    [{ url: webhook.url, encodingFinished: true }, noEvent],
  ])
})

test('a field given twice, or a flag other than true and false, is rejected in a form', async () => {
  const { request } = await serveApi({ profile: 'observed' })
  for (const [form, message] of [
    ['url=https://a.example&url=https://b.example&file_received=true', 'body.url must be a string'],
    ['url=https://a.example&file_received=1', notAFlag('file_received')],
    ['url=https://a.example&file_received=true&file_received=true', notAFlag('file_received')],
    ['url=https://a.example', noEvent],
    ['', 'body.url must be a string'],
  ] as const) {
    const body = new URLSearchParams(form)
    expect((await request('POST', '/webhooks', { headers: account, body })).body).toEqual({ status: 'fail', message })
  }
})

test.each(['/webhooks', '/api_keys'])('an invalid query of %s is rejected', async (path) => {
  const { call } = await serveApi({ profile: 'observed' })
  const wrongLimit = 'query.limit must be a whole number from 1 to 100'
  const wrongOffset = 'query.offset must be a whole number from 0 to 9007199254740991'
  const fields = path === '/webhooks' ? 'created_at, name, url' : 'created_at, name'
  for (const [query, message] of [
    ['limit=0', wrongLimit],
    ['limit=101', wrongLimit],
    ['limit=', wrongLimit],
    ['limit=ten', wrongLimit],
    ['limit=1.5', wrongLimit],
    ['limit=5&limit=6', wrongLimit],
    ['offset=-1', wrongOffset],
    ['offset=1e2', wrongOffset],
    ['offset=9999999999999999', wrongOffset],
    ['offset=99999999999999999999', wrongOffset],
    ['sort_by=id', `query.sort_by must be one of ${fields}`],
    ['sort_by=', `query.sort_by must be one of ${fields}`],
    ['order_by=ASC', 'query.order_by must be one of asc, desc'],
    ['search=a&search=b', 'query.search must be a string'],
  ] as const) {
    const { status, body } = await call('GET', `${path}?${query}`)
    expect([status, body], query).toEqual([400, { status: 'fail', message }])
  }
})

test('a query filters webhooks by flags, and API keys by none', async () => {
  const { call } = await serveApi()
  for (const value of ['yes', '', 'TRUE', '1', 'true&file_received=true']) {
    const { status, body } = await call('GET', `/webhooks?file_received=${value}`)
    expect([status, body.message]).toEqual([400, 'query.file_received must be true or false'])
  }
  expect((await call('GET', '/api_keys?sort_by=url')).status).toBe(400)
  expect((await call('GET', '/api_keys?file_received=yes')).status).toBe(200)
})

test('unknown fields of a body or a query are ignored', async () => {
  const { call } = await serveApi()
  const { status, body } = await call('POST', '/webhooks', { ...webhook, id: 'mine', user_id: 'me', extra: { a: [1] } })
  expect(status).toBe(201)
  expect(body.data.webhook).not.toHaveProperty('extra')
  expect(body.data.webhook.id).not.toBe('mine')
  expect((await call('GET', '/webhooks?page=2&sortBy=url')).body.data.total).toBe(1)
})

test.each([
  ['GET', '/webhooks/'],
  ['PATCH', '/webhooks/'],
  ['DELETE', '/webhooks/'],
  ['POST', '/webhooks/check/'],
  ['PATCH', '/api_keys/'],
  ['DELETE', '/api_keys/'],
])(
  '%s %s<id> answers 400 for an id that is not a UUID, as observed, and 404 for an unknown one',
  async (method, path) => {
    const { call } = await serveApi({ profile: 'observed' })
    const body = method === 'PATCH' ? { name: 'x', api_key_name: 'x' } : undefined
    for (const id of [
      '1',
      'check',
      '7f0f8a3e6a0c4c599d0f0c1f6a4b2d11',
      '%2f',
      '%',
      '7f0f8a3e-6a0c-4c59-9d0f-0c1f6a4b2d1g',
    ]) {
      const answer = await call(method, path + id, body)
      expect([answer.status, answer.body], id).toEqual([400, { status: 'fail', message: 'id must be a UUID' }])
    }
    for (const id of ['7f0f8a3e-6a0c-4c59-9d0f-0c1f6a4b2d11', '00000000-0000-0000-0000-000000000000']) {
      const answer = await call(method, path + id, body)
      expect([answer.status, answer.body]).toEqual([
        404,
        { status: 'fail', message: expect.stringMatching(/^there is no (webhook|API key) with this id$/) },
      ])
    }
  },
)
