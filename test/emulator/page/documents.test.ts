import { expect, test } from 'vitest'
import { answering, api, emulate, serve, subscribe } from '../fixture.ts'

/** Sends a form of the page, and does not follow where it leads. */
const send = (url: string, form: Record<string, string>) =>
  fetch(url, { method: 'POST', body: new URLSearchParams(form), redirect: 'manual' })

const read = async (url: string): Promise<string> => (await fetch(url)).text()

test('the page and its sections have no script, style or handler of their own, as its policy has it', async () => {
  const emulator = await emulate()
  await subscribe(emulator, await serve(answering(200)))
  emulator.addMedia()
  await emulator.settled()
  const [sending] = emulator.sendings()
  const html = await read(`${emulator.url}/?sending=${sending?.id}`)
  expect(html).toContain('<h4>Delivery 1')
  expect(html).not.toMatch(/<style|\sstyle=|\son\w+=|javascript:|https?:\/\/(?!127\.0\.0\.1)[^\s"]+"/)
  expect(html.match(/<script[^>]*>/g)).toEqual(['<script type="module" src="/page/browser.js">'])
})

test.each([
  ['/page/style.css', 'text/css'],
  ['/page/browser.js', 'text/javascript'],
  ['/page/morph.js', 'text/javascript'],
  ['/page/icon.svg', 'image/svg+xml'],
])('%s is served as %s', async (path, type) => {
  const response = await fetch(`${(await emulate()).url}${path}`)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toContain(type)
})

test('a section is served on its own, and what is none is not', async () => {
  const { url } = await emulate()
  expect(await read(`${url}/page/sections/deliveries`)).toMatch(/^<section id="deliveries".*<\/section>$/s)
  for (const id of ['nothing', 'toString', '__proto__']) {
    expect((await fetch(`${url}/page/sections/${id}`)).status).toBe(404)
  }
})

test('an action leads back to the view that it was done in, and says once what came of it', async () => {
  const emulator = await emulate()
  const form = { url: 'http://127.0.0.1:9/', name: '', encoding_finished: 'on' }
  const response = await send(`${emulator.url}/page/webhooks?state=failed&media=2`, form)
  expect(response.status).toBe(303)
  const location = new URL(response.headers.get('location') ?? '', emulator.url)
  expect(location.href).toMatch(`${emulator.url}/?state=failed&notice=`)
  expect(location.searchParams.get('media')).toBe('2')
  expect(await read(location.href)).toContain('The webhook was created.')
  expect(await read(location.href)).not.toContain('The webhook was created.')
})

test('an action leads to no other site, whatever its address says', async () => {
  const { url } = await emulate()
  const response = await send(`${url}/page/media?state=//example.com&webhook=//example.com`, { qualities: '360p' })
  expect(response.headers.get('location')).toMatch(/^\/\?/)
})

test('an action that is refused shows why, and what was typed', async () => {
  const { url } = await emulate()
  const response = await send(`${url}/page/media`, { title: 'A "title"', qualities: '' })
  const html = await response.text()
  expect(response.status).toBe(422)
  expect(html).toContain('role="alert"')
  expect(html).toContain('value="A &quot;title&quot;"')
})

test.each([
  [{ scheme: 'hmac-signature', header: 'x-signature' }, 'Secret is missing'],
  [{ scheme: 'basic-auth', username: 'a' }, 'Password is missing'],
  [{ scheme: 'hmac-signature', secret: 's', header: 'x y' }, 'Header has to be the name of a header'],
  [
    { scheme: 'hmac-signature', secret: 's', header: 'x', timestampHeader: 'x y' },
    'Timestamp header has to be the name of a header',
  ],
  [{ scheme: 'hmac-signature', secret: 's', header: 'x', prefix: 'ä' }, 'Prefix has to be printable ASCII'],
  [{ scheme: 'url-token', secret: 's\n' }, 'Secret 1 of 1 begins or ends with'],
  [{ scheme: 'standard-webhooks', secret: 's3' }, 'A secret is base64 after'],
])('a behaviour such as %j is refused in the words of the form', async (form, message) => {
  const emulator = await emulate()
  const { id } = await subscribe(emulator, 'http://127.0.0.1:9/')
  const html = await (await send(`${emulator.url}/page/webhooks/${id}/behaviour`, form)).text()
  expect(/role="alert".*?<\/span> ([^<]*)/s.exec(html)?.[1]).toMatch(new RegExp(`^${message}`))
})

test('the receiver of the first steps stands where the form proposes it', async () => {
  const html = await read((await emulate()).url)
  expect(html.match(/http:\/\/127\.0\.0\.1:3000\/[\w/]*/g)).toEqual(
    Array(2).fill('http://127.0.0.1:3000/webhooks/media'),
  )
})

test.each([
  'webhooks/nothing/edit',
  'webhooks/nothing/behaviour',
  'api-keys/nothing/delete',
  'sendings/nothing/repeat',
])('%s is refused', async (action) => {
  const { url } = await emulate()
  expect((await send(`${url}/page/${action}`, { url: 'http://127.0.0.1:9/', fault: 'drop' })).status).toBe(422)
})

test('a form that is too large is refused', async () => {
  const emulator = await emulate()
  const response = await send(`${emulator.url}/page/webhooks`, { url: `http://127.0.0.1:9/${'x'.repeat(100_000)}` })
  expect(response.status).toBe(413)
  expect((await api(emulator, 'GET', '/webhooks')).body.data.total).toBe(0)
})

test('the page is kept by no cache, for it may hold a secret', async () => {
  const response = await fetch((await emulate()).url)
  expect(response.headers.get('cache-control')).toBe('no-store')
})
