import { expect, test } from 'vitest'
import { ask } from '../ask.ts'
import { emulate } from '../started-emulator.ts'

test.each([
  ['the page', '/', 200],
  ['the API', '/api/webhooks', 401],
  ['the control interface', '/emulator/media', 200],
  ['a path that does not exist', '/nothing', 404],
])('%s is isolated from other pages', async (_, path, status) => {
  const { url } = await emulate()
  const answered = await ask(`${url}${path}`)
  expect(answered.status).toBe(status)
  expect(answered.headers).toMatchObject({
    'content-security-policy': expect.stringMatching(/default-src 'self'.*frame-ancestors 'none'/),
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'same-origin',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
  })
  expect(Object.keys(answered.headers).filter((name) => name.startsWith('access-control-'))).toEqual([])
})

test('the page, the API and the control interface reject another origin, and its preflight requests', async () => {
  const { url, credentials } = await emulate()
  const origin = 'https://evil.example'
  const authorization = `Bearer ${credentials.accessToken}`
  for (const path of ['/', '/api/webhooks', '/emulator/media', '/emulator/events']) {
    const rejected = {
      status: 403,
      body: { status: 'fail', message: 'requests from pages of another origin are rejected' },
    }
    expect(await ask(`${url}${path}`, { headers: { origin, authorization } })).toMatchObject(rejected)
    const preflight = { origin, 'access-control-request-method': 'POST' }
    expect(await ask(`${url}${path}`, { method: 'OPTIONS', headers: preflight })).toMatchObject(rejected)
  }
})
