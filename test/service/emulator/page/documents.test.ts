import { expect, onTestFinished, test, vi } from 'vitest'
import { serveWebhook } from '../../../support/serve.ts'
import { answering, api, emulate, subscribe } from '../started-emulator.ts'

/** Sends a form of the page, without following the redirect. */
const send = (url: string, form: Record<string, string>) =>
  fetch(url, { method: 'POST', body: new URLSearchParams(form), redirect: 'manual' })

const read = async (url: string): Promise<string> => (await fetch(url)).text()

test('the page has no inline script, style or handler, as its policy requires', async () => {
  const emulator = await emulate()
  await subscribe(emulator, await serveWebhook(answering(200)))
  emulator.addMedia()
  await emulator.settled()
  const [sending] = emulator.sendings()
  const html = await read(`${emulator.url}/?sending=${sending?.id}`)
  expect(html).toContain('<h3>Delivery 1')
  expect(html).not.toMatch(/<style|\sstyle=|\son\w+=|javascript:|https?:\/\/(?!127\.0\.0\.1)[^\s"]+"/)
  expect(html.match(/<script[^>]*>/g)).toEqual(['<script type="module" src="/page/browser.js">'])
})

test('an API key expires at a date in the time zone of the reader, with the time in UTC at hand', async () => {
  vi.stubEnv('TZ', 'Asia/Kolkata')
  onTestFinished(() => void vi.unstubAllEnvs())
  const { url } = await emulate()
  await send(`${url}/page/api-keys`, { name: 'Deploy', ttl: '86400', type: 'full_access' })
  const [, utc = '', shown] = /expires at <time[^>]* title="([^"]*)">([^<]*)/.exec(await read(url)) ?? []
  expect(Date.parse(utc) - Date.now()).toBeGreaterThan(86_000_000)
  const fiveAndAHalfHours = 330 * 60_000
  expect(shown).toBe(new Date(Date.parse(utc) + fiveAndAHalfHours).toISOString().slice(0, 19).replace('T', ' '))
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

test('a section is served on its own, and an unknown one answers 404', async () => {
  const { url } = await emulate()
  expect(await read(`${url}/page/sections/deliveries`)).toMatch(/^<section id="deliveries".*<\/section>$/s)
  for (const id of ['nothing', 'toString', '__proto__']) {
    expect((await fetch(`${url}/page/sections/${id}`)).status).toBe(404)
  }
})

test('an action leads back to its view and shows its result once', async () => {
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

test('an action never redirects to another site', async () => {
  const { url } = await emulate()
  const response = await send(`${url}/page/media?state=//example.com&webhook=//example.com`, { qualities: '360p' })
  expect(response.headers.get('location')).toMatch(/^\/\?/)
})

test('a rejected action shows the error and keeps the input', async () => {
  const { url } = await emulate()
  const response = await send(`${url}/page/media`, { title: 'A "title"', qualities: '' })
  const html = await response.text()
  expect(response.status).toBe(422)
  expect(html).toContain('role="alert"')
  expect(html).toContain('value="A &quot;title&quot;"')
})

test.each<[Record<string, string>, string]>([
  [{ scheme: 'hmac-signature', header: 'x-signature' }, 'Secret is missing'],
  [{ scheme: 'basic-auth', username: 'a' }, 'Password is missing'],
  [{ scheme: 'hmac-signature', secret: 's', header: 'x y' }, 'Header must be the name of a header'],
  [
    { scheme: 'hmac-signature', secret: 's', header: 'x', timestampHeader: 'x y' },
    'Timestamp header must be the name of a header',
  ],
  [{ scheme: 'hmac-signature', secret: 's', header: 'x', signed: '{time}.{body}' }, 'Signed must be text, '],
  [{ scheme: 'hmac-signature', secret: 's', header: 'x', prefix: 'ä' }, 'Prefix must be printable ASCII'],
  [{ scheme: 'url-token', secret: 's\n' }, 'Secret 1 of 1 begins or ends with'],
  [{ scheme: 'standard-webhooks', secret: 's3' }, 'A secret must be base64, after'],
  [
    { scheme: 'hmac-signature', secret: 's', header: 'x-signature', timestampHeader: 'X-Signature' },
    'Timestamp header must differ from header',
  ],
  [{ scheme: 'timestamped-signature', secret: 's' }, 'Header is missing'],
  [{ scheme: 'timestamped-signature', secret: 's', header: 'x', time: 'ä' }, 'Time must be printable ASCII'],
  [
    { scheme: 'timestamped-signature', secret: 's', header: 'x', time: 'a', signature: 'a' },
    'Time must differ from signature',
  ],
  [{ scheme: '__proto__' }, 'Scheme must be one of'],
  [{ scheme: 'toString' }, 'Scheme must be one of'],
])('the error of a behaviour such as %j uses the labels of the form', async (form, message) => {
  const emulator = await emulate()
  const { id } = await subscribe(emulator, 'http://127.0.0.1:9/')
  const html = await (await send(`${emulator.url}/page/webhooks/${id}/behaviour`, form)).text()
  expect(/role="alert".*?<\/span> ([^<]*)/s.exec(html)?.[1]).toMatch(new RegExp(`^${message}`))
})

test('the receiver of the first steps has the URL that the form suggests', async () => {
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
])('%s is rejected', async (action) => {
  const { url } = await emulate()
  expect((await send(`${url}/page/${action}`, { url: 'http://127.0.0.1:9/', fault: 'drop' })).status).toBe(422)
})

test('a form that is too large is rejected', async () => {
  const emulator = await emulate()
  const response = await send(`${emulator.url}/page/webhooks`, { url: `http://127.0.0.1:9/${'x'.repeat(100_000)}` })
  expect(response.status).toBe(413)
  expect((await api(emulator, 'GET', '/webhooks')).body.data.total).toBe(0)
})

test('the secrets that were given are not on the page, and the generated ones are', async () => {
  const given = { publicKey: 'public', secretKey: 'given-secret', accessToken: 'given-token' }
  const html = await read((await emulate(given)).url)
  expect(html.includes('given-')).toBe(false)
  expect(html.match(/as given/g)).toHaveLength(2)

  const { url, credentials } = await emulate({ secretKey: 'given-secret' })
  const mixed = await read(url)
  expect(mixed.includes('given-')).toBe(false)
  expect([credentials.publicKey, credentials.accessToken].every((each) => mixed.includes(each))).toBe(true)
})

test('the filter of the deliveries names every webhook, and the deleted one that it shows', async () => {
  const emulator = await emulate()
  const url = await serveWebhook(answering(200))
  for (let index = 0; index < 120; index++) await subscribe(emulator, url, ['encoding_failed'])
  const { id } = await subscribe(emulator, url, ['file_received'])
  emulator.addMedia()
  await emulator.settled()
  const chosen = async () => {
    const html = await read(`${emulator.url}/?webhook=${id}`)
    const [, select = ''] = /<select name="webhook">(.*?)<\/select>/s.exec(html) ?? []
    return { options: select.split('<option').length - 1, selected: /selected=""[^>]*>([^<]*)/.exec(select)?.[1] }
  }
  expect(await chosen()).toEqual({ options: 122, selected: 'default-name-webhook' })
  await api(emulator, 'DELETE', `/webhooks/${id}`)
  expect(await chosen()).toEqual({ options: 122, selected: 'deleted webhook' })
})

test('no cache keeps the page, because it may hold a secret', async () => {
  const response = await fetch((await emulate()).url)
  expect(response.headers.get('cache-control')).toBe('no-store')
})
