import { describe, expect, test } from 'vitest'
import { postRoutes } from '../../src/dashboard/acting/actions.ts'
import { type Dashboard, dashboard } from '../../src/dashboard/index.ts'
import { assets } from '../../src/dashboard/page/assets.ts'
import { getRoutes } from '../../src/dashboard/page/routes.tsx'
import { failing, fromHere, receiverWith, silent } from './fixture.ts'

const origin = 'http://127.0.0.1:3000'

// Every address there is, so that a new one cannot be forgotten.
const reads = [...getRoutes.keys(), ...assets.keys(), 'nothing'].map((route) => ['GET', route] as const)
const actions = [...postRoutes.keys(), ''].map((route) => ['POST', route] as const)
const addresses = [...reads, ...actions]

/** Asks as a browser of this machine does, but for the given headers. */
function ask(
  page: Dashboard,
  [method, route]: readonly [string, string],
  headers: Record<string, string> = {},
  env: unknown = fromHere,
) {
  const body = method === 'POST' ? new URLSearchParams({ key: 'none', scope: 'keys' }) : undefined
  const own = { host: '127.0.0.1:3000', ...(body && { origin }) }
  const init = { method, headers: { ...own, ...headers }, ...(body && { body }) }
  return page.fetch(new Request(`${origin}/inbox/${route}`, init), env)
}

const options = { path: '/inbox' }
const elsewhere = (remoteAddress?: string) => ({ incoming: { socket: { remoteAddress } } })

describe.each(addresses)('%s /%s', (...address) => {
  const [method, route] = address

  test('answers this machine, with headers that isolate the page', async () => {
    const response = await ask(dashboard(receiverWith(), options), address)
    expect(response.status).toBe(
      route === 'nothing' || ['event', 'media', 'job'].includes(route)
        ? 404
        : method === 'POST'
          ? ({ '': 405, discard: 200 }[route] ?? 303)
          : route === 'find'
            ? 303
            : 200,
    )
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'cache-control': 'no-store',
      'content-security-policy': expect.stringMatching(/default-src 'self'.*frame-ancestors 'none'/),
      'referrer-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    })
    expect(response.headers.get('content-security-policy')).not.toContain('unsafe')
  })

  test.each([
    ['another machine', {}, elsewhere('192.0.2.1')],
    ['nobody knows whom', {}, {}],
    ['a socket without an address', {}, elsewhere()],
    ['a proxy on this machine (Forwarded)', { forwarded: 'for=192.0.2.1' }, fromHere],
    ['a proxy on this machine (X-Forwarded-For)', { 'x-forwarded-for': '192.0.2.1' }, fromHere],
    ['a proxy on this machine (X-Forwarded-Proto)', { 'x-forwarded-proto': 'https' }, fromHere],
    ['a proxy on this machine (X-Real-IP)', { 'x-real-ip': '192.0.2.1' }, fromHere],
    ['a proxy on this machine (Via)', { via: '1.1 nginx' }, fromHere],
    ['a name that resolves to this machine', { host: 'rebound.example' }, fromHere],
    ['a name that begins like this machine', { host: 'localhost.example:3000' }, fromHere],
  ])('rejects %s, and names the fix', async (_, headers, env) => {
    const response = await ask(dashboard(receiverWith(), options), address, headers, env)
    expect([response.status, await response.text()]).toEqual([403, expect.stringContaining('option authorize')])
  })

  test('asks authorize, and answers nothing else without it', async () => {
    const receiver = receiverWith()
    const rejected = await ask(dashboard(receiver, { ...options, authorize: () => false }), address)
    expect([rejected.status, await rejected.text()]).toEqual([403, 'You may not see this page.\n'])
    const truthy = await ask(dashboard(receiver, { ...options, authorize: () => 'yes' as never }), address)
    expect(truthy.status).toBe(403)
    const login = new Response(null, { status: 302, headers: { location: '/login' } })
    const sent = await ask(dashboard(receiver, { ...options, authorize: async () => login }), address)
    expect(sent).toBe(login)
  })

  test('shows nothing when authorize throws', async () => {
    const errors: object[] = []
    const logger = { ...silent, error: (details: object) => void errors.push(details) }
    const authorize = () => Promise.reject(new Error('the session store is down'))
    const response = await ask(dashboard(receiverWith({ logger }), { ...options, authorize }), address)
    expect(response.status).toBe(500)
    expect(await response.text()).not.toContain('session store')
    expect(errors).toEqual([{ err: new Error('the session store is down') }])
  })
})

test.each(['127.0.0.1', '127.8.9.1', '::1', '::ffff:127.0.0.1'])('%s is this machine', async (address) => {
  expect((await ask(dashboard(receiverWith(), options), ['GET', ''], {}, elsewhere(address))).status).toBe(200)
})

test.each(['localhost:3000', '[::1]:3000', 'LOCALHOST'])('%s is a name of this machine', async (host) => {
  expect((await ask(dashboard(receiverWith(), options), ['GET', ''], { host })).status).toBe(200)
})

describe.each(actions)('%s /%s from another page', (...address) => {
  test.each([
    ['of another site', { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }],
    ['of another site, as an old browser says', { origin: 'https://evil.example' }],
    ['of another port', { origin: 'http://127.0.0.1:4000' }],
    ['of a sandboxed frame', { origin: 'null' }],
    ['of the same site', { origin, 'sec-fetch-site': 'same-site' }],
    ['that was typed in', { 'sec-fetch-site': 'none' }],
    ['that does not say', { origin: '' }],
  ])('%s is rejected, whatever authorize says', async (_, headers) => {
    const { receiver } = await failing(1)
    const page = dashboard(receiver, { ...options, authorize: () => true })
    expect((await ask(page, address, headers)).status).toBe(403)
  })
})

test('authorize gets the request, and may read its body', async () => {
  const { receiver, keys, state } = await failing(1)
  state.works = true
  let seen: string | undefined
  const authorize = async (request: Request) => {
    seen = `${request.headers.get('cookie')} ${await request.text()}`
    return true
  }
  const body = new URLSearchParams({ key: keys[0] ?? '' })
  const headers = { host: '127.0.0.1:3000', origin, cookie: 'session=1' }
  const page = dashboard(receiver, { ...options, authorize })
  const response = await page.fetch(new Request(`${origin}/inbox/replay`, { method: 'POST', headers, body }))
  expect([response.status, seen]).toEqual([303, `session=1 ${body}`])
  await expect.poll(async () => (await receiver.inbox.stats()).deadLetters).toBe(0)
})

test.each([
  { path: 'inbox' },
  { path: '' },
  { path: '/a b' },
  { path: '//evil.example' },
  { authorize: true },
  { redact: false },
  { title: 'x' },
])('the options %j are rejected', (wrong) => {
  expect(() => dashboard(receiverWith(), wrong as never)).toThrow(expect.objectContaining({ code: 'invalid_option' }))
})
