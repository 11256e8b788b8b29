import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { postRoutes } from '../../../src/operate/dashboard/acting/actions.ts'
import { type Dashboard, dashboard } from '../../../src/operate/dashboard/index.ts'
import { assets } from '../../../src/operate/dashboard/page/assets.ts'
import { getRoutes } from '../../../src/operate/dashboard/page/routes.tsx'
import { silent } from '../../support/silent.ts'
import { untyped } from '../../support/untyped.ts'
import { failing, receiverWith } from './failing-receiver.ts'

const origin = 'http://127.0.0.1:3000'

// Every address there is, so that a new one cannot be forgotten.
const reads = [...getRoutes.keys(), ...assets.keys(), 'nothing'].map((route) => ['GET', route] as const)
const actions = [...postRoutes.keys(), ''].map((route) => ['POST', route] as const)
const addresses = [...reads, ...actions]

/** Asks as a browser of this machine does, except for the given headers. `undefined` leaves a header out. */
function ask(
  page: Dashboard,
  [method, route]: readonly [string, string],
  changed: Record<string, string | undefined> = {},
) {
  const body = method === 'POST' ? new URLSearchParams({ key: 'none', scope: 'keys' }) : undefined
  const headers = new Headers()
  for (const [name, value] of Object.entries({ host: '127.0.0.1:3000', origin: body && origin, ...changed }))
    if (value !== undefined) headers.set(name, value)
  const init = { method, headers, ...(body && { body }) }
  return page.fetch(new Request(`${origin}/inbox/${route}`, init))
}

const options = { path: '/inbox', authorize: () => true }

describe.each(addresses)('%s /%s', (...address) => {
  const [method, route] = address

  test('is answered with headers that isolate the page', async () => {
    const response = await ask(dashboard(receiverWith(), options), address)
    expect(response.status).toBe(
      route === 'nothing' || ['event', 'media', 'bulk-action'].includes(route)
        ? 404
        : method === 'POST'
          ? // The memory inbox cannot be paused.
            ({ '': 405, discard: 200, pause: 400, resume: 400 }[route] ?? 303)
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

  test('asks authorize, and answers nothing else without it', async () => {
    const receiver = receiverWith()
    const rejected = await ask(dashboard(receiver, { ...options, authorize: () => false }), address)
    expect([rejected.status, await rejected.text()]).toEqual([403, 'You may not see this page.\n'])
    const truthy = await ask(dashboard(receiver, { ...options, authorize: () => untyped('yes') }), address)
    expect(truthy.status).toBe(403)
    const nameless = await ask(dashboard(receiver, { ...options, authorize: () => ({ user: '' }) }), address)
    expect(nameless.status).toBe(403)
    const login = new Response(null, { status: 302, headers: { location: '/login' } })
    const sent = await ask(dashboard(receiver, { ...options, authorize: async () => login }), address)
    expect(sent).toBe(login)
  })

  test('shows a page to a reader who may only read, without what acts, and answers an action 403', async () => {
    const { receiver } = await failing(1)
    const everyone = dashboard(receiver, options)
    const readers = dashboard(receiver, { ...options, authorize: () => 'read' })
    const response = await ask(readers, address)
    const text = await response.text()
    expect(response.status).toBe(method === 'POST' ? 403 : (await ask(everyone, address)).status)
    expect(text).not.toContain('method="post"')
    expect((await receiver.inbox.stats()).deadLetters).toBe(1)
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

describe.each(actions)('%s /%s from another page', (...address) => {
  test.each([
    ['of another site', { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }],
    ['of another site, as an old browser says', { origin: 'https://evil.example' }],
    ['of another port', { origin: 'http://127.0.0.1:4000' }],
    ['of a sandboxed frame', { origin: 'null' }],
    ['of the same site', { origin, 'sec-fetch-site': 'same-site' }],
    ['that was typed in', { 'sec-fetch-site': 'none' }],
    ['whose browser sends an empty origin', { origin: '' }],
    ['that does not say so, such as a program other than a browser', { origin: undefined }],
  ])('%s is rejected, whatever authorize says', async (_, headers) => {
    const { receiver } = await failing(1)
    const page = dashboard(receiver, options)
    expect((await ask(page, address, headers)).status).toBe(403)
  })
})

test('an action comes from the host that the browser asked, also if the server has another name for itself', async () => {
  const page = dashboard(receiverWith(), options)
  const act = (from: string) => ask(page, ['POST', 'replay'], { host: 'inbox.example', origin: from })
  expect((await act('https://inbox.example')).status).toBe(303)
  expect((await act(origin)).status).toBe(403)
})

test.each([
  ['a browser that tells its site', { 'sec-fetch-site': 'same-origin' }],
  ['a browser that does not', {}],
])('with an origin only its own pages act, on any host, in %s', async (_, headers) => {
  const page = dashboard(receiverWith(), { ...options, origin: 'https://ops.example.com' })
  const act = async (host: string, from?: string) =>
    (await ask(page, ['POST', 'replay'], { host, origin: from, ...headers })).status
  expect(await act('ops.example.com', 'https://ops.example.com')).toBe(303)
  expect(await act('127.0.0.1:3000', 'https://ops.example.com')).toBe(303)
  // A name of another site that resolves to this server.
  expect(await act('evil.example', 'https://evil.example')).toBe(403)
  expect(await act('ops.example.com', 'http://ops.example.com')).toBe(403)
  expect(await act('ops.example.com')).toBe(403)
})

test('a reader who may only read sees lists and stories without anything to tick or press', async () => {
  const { receiver, keys } = await failing(2)
  const cause = /cause=(\w+)/.exec(await (await ask(dashboard(receiver, options), ['GET', ''])).text())?.[1]
  const readers = dashboard(receiver, { ...options, authorize: () => 'read' })
  const routes = [
    'events',
    `dead-letters?cause=${cause}`,
    `event?key=${encodeURIComponent(keys[0] ?? '')}`,
    'media?id=media-1',
  ]
  for (const route of routes) {
    const html = await (await ask(readers, ['GET', route])).text()
    expect(html).toContain('the catalogue knows no media')
    expect(html).toContain('read only')
    expect(html).not.toMatch(/method="post"|type="checkbox"|Replay|Discard/)
  }
})

test.each(['READ', 'write', ''])('any other word than read, such as %j, lets no request in', async (word) => {
  const page = dashboard(receiverWith(), { ...options, authorize: () => untyped(word) })
  expect((await ask(page, ['GET', 'events'])).status).toBe(403)
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
  { origin: 'ops.example.com' },
  { origin: 'https://ops.example.com/' },
  { origin: 'null' },
  { origin: undefined, title: 'x' },
])('the options %j are rejected', (wrong) => {
  expect(() => dashboard(receiverWith(), untyped({ ...options, ...wrong }))).toThrow(
    expect.objectContaining({ code: 'invalid_option' }),
  )
})

test.each([undefined, {}, { path: '/inbox' }])('the options %j are rejected, and the error names the fix', (wrong) => {
  const message = expect.stringMatching(/give authorize.*localOnly\(\)/)
  expect(() => dashboard(receiverWith(), untyped(wrong))).toThrow(
    expect.objectContaining({ code: 'invalid_option', message }),
  )
})

test('an authorize that never settles is answered 500 after 10 s', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const errors: object[] = []
  const logger = { ...silent, error: (details: object) => void errors.push(details) }
  const page = dashboard(receiverWith({ logger }), { ...options, authorize: () => new Promise<boolean>(() => {}) })
  const answer = ask(page, ['GET', ''])
  await vi.advanceTimersByTimeAsync(10_000)
  expect((await answer).status).toBe(500)
  expect(errors).toEqual([{ err: expect.objectContaining({ code: 'timeout' }) }])
})
