import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { Hono } from 'hono'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { answerError } from '../../../../src/service/emulator/http/answer-error.ts'
import { sameOrigin } from '../../../../src/service/emulator/http/same-origin.ts'
import { type ListeningServer, listen } from '../../../../src/service/emulator/http/server.ts'
import { ask } from '../ask.ts'

let server: ListeningServer
let url: string
/** Replaces `:port` in the headers of a case with the server's port. */
let portIn: (headers: Record<string, string>) => Record<string, string>

beforeAll(async () => {
  server = await listen(0)
  const { port } = server
  url = `http://127.0.0.1:${port}`
  portIn = (headers) =>
    Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.replace(':port', `:${port}`)]))
  const app = new Hono().use(sameOrigin(port)).all('*', (context) => context.text('let in'))
  server.serve(app.onError(answerError).fetch)
})
afterAll(() => server.close())

const link = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }

describe('lets in', () => {
  test.each<[string, Record<string, string>, string?, string?]>([
    ['a program that sends no browser headers', {}],
    ['a program with any method', {}, 'DELETE', '/api/webhooks/1'],
    ['localhost', { host: 'localhost:port' }],
    ['a host in capitals', { host: 'LOCALHOST:port' }],
    ['the IPv6 address that a forwarded port may have', { host: '[::1]:port' }],
    ['its own page', { origin: 'http://127.0.0.1:port', 'sec-fetch-site': 'same-origin' }, 'POST'],
    ['its own page, opened as localhost', { host: 'localhost:port', origin: 'http://localhost:port' }, 'POST'],
    [
      'an address typed into the browser',
      { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' },
      'GET',
      '/api/webhooks',
    ],
    ['a link to the page', link],
    ['a link to the page, from another port', { ...link, 'sec-fetch-site': 'same-site' }, 'GET', '/?state=failed'],
  ])('%s', async (_, headers, method = 'GET', path = '/') => {
    expect(await ask(`${url}${path}`, { method, headers: portIn(headers) })).toMatchObject({
      status: 200,
      body: 'let in',
    })
  })
})

describe('rejects', () => {
  const post = 'POST'
  test.each<[string, Record<string, string>, string?, string?]>([
    ['a foreign name that resolves to this machine (DNS rebinding)', { host: 'evil.example:port' }],
    ['a name that begins like ours', { host: '127.0.0.1.evil.example:port' }],
    ['a name that ends like ours', { host: 'evil.localhost:port' }],
    ['another port', { host: '127.0.0.1:1' }],
    ['no port', { host: '127.0.0.1' }],
    ['another name of this machine', { host: '0.0.0.0:port' }],
    ['another origin', { origin: 'https://evil.example' }, post],
    ['another origin, when it only reads', { origin: 'https://evil.example' }],
    ['another port of this machine', { origin: 'http://127.0.0.1:1' }, post],
    ['another name of this origin', { origin: 'http://localhost:port' }, post],
    ['another scheme', { origin: 'https://127.0.0.1:port' }, post],
    ['an opaque origin', { origin: 'null' }, post],
    ['an empty origin', { origin: '' }, post],
    ['a request from another site', { 'sec-fetch-site': 'cross-site' }],
    ['a request from another port', { 'sec-fetch-site': 'same-site' }],
    ['an image in another page', { ...link, 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' }],
    ['another page that frames the page', { ...link, 'sec-fetch-dest': 'iframe' }],
    ['a form in another page', link, post],
    ['a link to anything but the page', link, 'GET', '/api/webhooks'],
    ['a link to the page by another name', { ...link, host: 'evil.example:port' }],
  ])('%s', async (_, headers, method = 'GET', path = '/') => {
    const answered = await ask(`${url}${path}`, { method, headers: portIn(headers) })
    expect(answered).toMatchObject({
      status: 403,
      body: { status: 'fail', message: expect.stringMatching(/host|rejected/) },
    })
    expect(Object.keys(answered.headers).filter((name) => name.startsWith('access-control-'))).toEqual([])
  })

  test.each(['GET / HTTP/1.0\r\n\r\n', 'GET / HTTP/1.1\r\nconnection: close\r\n\r\n'])(
    'a request without a host: %j',
    async (head) => {
      const socket = connect(server.port, '127.0.0.1')
      socket.write(head)
      expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 /)
    },
  )
})
