import { expect, onTestFinished, test, vi } from 'vitest'
import { dashboard, localOnly } from '../../../src/operate/dashboard/index.ts'
import { receiverWith } from './failing-receiver.ts'

/** Makes a page for this machine only, and collects what it prints. */
function ownPage() {
  const log = vi.spyOn(console, 'log').mockReturnValue()
  onTestFinished(() => log.mockRestore())
  const page = dashboard(receiverWith(), { path: '/inbox', authorize: localOnly() })
  const get = (url: string, headers: Record<string, string> = {}) => page.fetch(new Request(url, { headers }))
  return { page, get, printed: () => log.mock.calls.flat().join('\n') }
}

/** Makes a page, and reads its token from standard output, as its user does. */
async function withToken() {
  const own = ownPage()
  await own.get('http://localhost:4020/inbox')
  const [url = '', token = ''] = /http:\S+\?token=(\S+)$/.exec(own.printed()) ?? []
  expect(url).toBe(`http://localhost:4020/inbox?token=${token}`)
  return { ...own, url, token, cookie: `media-webhooks4020=${token}` }
}

test('the token is printed when the server starts', () => {
  const { printed } = ownPage()
  expect(printed()).toMatch(/^To open the dashboard, .*\?token=[\da-f-]{36}$/)
})

test('a request without the token is told where its URL is, and the URL is printed once', async () => {
  const { get, printed } = ownPage()
  for (const url of ['http://localhost:4020/inbox', 'http://127.0.0.1:4020/inbox/events?token=guess']) {
    const rejected = await get(url)
    expect([rejected.status, rejected.headers.getSetCookie()]).toEqual([403, []])
    expect(await rejected.text()).toContain('the URL that the server printed')
  }
  expect(printed()).toMatch(/^.* URL: \?token=([\da-f-]{36})\n.* http:\/\/localhost:4020\/inbox\?token=\1$/)
})

test('the URL with the token sets a cookie that no script reads and no other site sends, and leads to the URL without it', async () => {
  const { get, url, cookie } = await withToken()
  const response = await get(url)
  expect([response.status, response.headers.get('location'), response.headers.get('cache-control')]).toEqual([
    303,
    './inbox',
    'no-store',
  ])
  expect(response.headers.getSetCookie()).toEqual([`${cookie}; Path=/; HttpOnly; SameSite=Strict`])
  const shown = await get('http://localhost:4020/inbox', { cookie: `other=1; ${cookie}` })
  expect([shown.status, await shown.text()]).toEqual([200, expect.stringContaining('Overview')])
})

test.each([
  ['/inbox/media?id=a&token=', './media?id=a'],
  ['/inbox/?token=', './'],
  ['//evil.example?token=', './evil.example'],
])('%s leads to %s', async (path, location) => {
  const { get, token } = await withToken()
  expect((await get(`http://localhost:4020${path}${token}`)).headers.get('location')).toBe(location)
})

test.each(['rebound.example', 'localhost.example:4020', '127.0.0.1.example'])(
  'a request for the host %s is rejected even with the token, and prints no URL',
  async (host) => {
    const { get, url, cookie, printed } = await withToken()
    const before = printed()
    expect((await get(url, { host })).status).toBe(403)
    expect((await get('http://localhost:4020/inbox', { host, cookie })).status).toBe(403)
    expect(printed()).toBe(before)
  },
)

test.each(['localhost:4020', '127.0.0.1:4020', '[::1]:4020', 'LOCALHOST:4020'])('%s is a local host', async (host) => {
  const { get, cookie } = await withToken()
  expect((await get('http://localhost:4020/inbox', { host, cookie })).status).toBe(200)
})

test('the cookie of a page on another port, or of another process, opens nothing', async () => {
  const { get, token } = await withToken()
  expect((await get('http://localhost:4021/inbox', { cookie: `media-webhooks4020=${token}` })).status).toBe(403)
  expect((await get('http://localhost:4020/inbox', { cookie: 'media-webhooks4020=' })).status).toBe(403)
  const other = ownPage()
  expect((await other.get(`http://localhost:4020/inbox?token=${token}`)).status).toBe(403)
})

test('an action comes from the page itself, also with the cookie', async () => {
  const { page, cookie } = await withToken()
  const act = (origin: string, headers: object) =>
    page.fetch(
      new Request('http://localhost:4020/inbox/replay', {
        method: 'POST',
        body: new URLSearchParams({ key: 'none', scope: 'keys' }),
        headers: { origin, ...headers },
      }),
    )
  expect((await act('http://localhost:4020', { cookie })).status).toBe(303)
  expect((await act('http://localhost:4020', {})).status).toBe(403)
  expect((await act('https://evil.example', { cookie })).status).toBe(403)
})
