import { expect, test } from 'vitest'
import { createClient } from '../../src/service/client/index.ts'
import type { Behaviour } from '../../src/service/emulator/index.ts'
import { answering } from '../service/emulator/started-emulator.ts'
import { serveWebhook } from '../support/serve.ts'
import { type Running, start } from './program.ts'

const token = 'the-access-token'

/** Creates a webhook in an emulator that was started with the token, and uploads a media item for it. */
async function upload(program: Running, url: string, behaviour: Behaviour = {}) {
  const [baseUrl = ''] = /http:\/\/127\.0\.0\.1:\d+/.exec(await program.line(/http:/)) ?? []
  const client = createClient({ accessToken: token }, { baseUrl })
  const { webhook } = (await client.webhook.create({ url, fileReceived: true })).data
  const put = (path: string, method: string, body: object) =>
    fetch(`${baseUrl}/emulator${path}`, {
      method,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  await put(`/webhooks/${webhook.id}/behaviour`, 'PUT', behaviour)
  await put('/media', 'POST', { qualities: ['360p'] })
  await fetch(`${baseUrl}/emulator/settled`)
  return client.webhook.check(webhook.id)
}

test('emulate prints its addresses and the credentials that it generated', async () => {
  const program = start(['emulate', '--port', '0', '--secret-key', 'the-secret-key'])
  await program.line(/^ {2}access token {2}\S{20,}$/)
  program.interrupt()
  expect(await program.code).toBe(0)
  const [, url] = /^ {2}base URL {6}(http:\/\/127\.0\.0\.1:\d+)$/m.exec(program.output()) ?? []
  expect(program.output()).toContain(`\n  API           ${url}/api\n  page          ${url}/\n`)
  expect(program.output()).toMatch(/^ {2}public key {4}\S{20,}\n {2}secret key {4}\(as given\)$/m)
  expect(program.output()).not.toContain('the-secret-key')
})

test('emulate --json prints the two arguments of createClient', async () => {
  const program = start(['emulate', '--port', '0', '--json'])
  const { credentials, options } = JSON.parse(await program.line(/^\{.*\}$/))
  const { data } = await createClient(credentials, options).webhook.list()
  expect(data).toEqual({ webhooks: [], total: 0 })
  program.interrupt()
  expect(await program.code).toBe(0)
})

test('emulate prints each delivery, with the pause before the next one at its time scale', async () => {
  const program = start(['emulate', '--port', '0', '--access-token', token, '--time-scale', '0.001'])
  const url = await serveWebhook(answering(503, 200))
  await upload(program, url)
  // The last one is the test delivery.
  await program.line(/encoding\.started/)
  const { host } = new URL(url)
  const printed = program.output().split('\n\n').at(-1) ?? ''
  const time = String.raw`\d\d:\d\d:\d\d\.\d{3}`
  const lines = [
    String.raw`${time}  file\.received      attempt 1  503  +\d+\.\d ms  ${host}`,
    String.raw` {14}not acknowledged \(status\): answered 503; retry in 3 ms`,
    String.raw`${time}  file\.received      attempt 2  200  +\d+\.\d ms  ${host}`,
    String.raw`${time}  encoding\.started   attempt 1  200  +\d+\.\d ms  ${host}`,
  ]
  expect(printed).toMatch(new RegExp(`^${lines.join('\n')}\n$`))
})

test('emulate prints no delivery of an event that it drops', async () => {
  const program = start(['emulate', '--port', '0', '--access-token', token, '--time-scale', '0.001'])
  await upload(program, await serveWebhook(answering(200)), { fault: 'drop' })
  await program.line(/encoding\.started/)
  expect(program.output()).not.toContain('file.received')
})

test('emulate prints no secret of a webhook that its receiver repeats', async () => {
  const program = start(['emulate', '--port', '0', '--access-token', token, '--time-scale', '0.001'])
  const url = await serveWebhook((request, response) => {
    response.writeHead(404).end(`Cannot POST ${request.url} with ${request.headers['x-token']}`)
  })
  const sign = { scheme: 'header-token', secret: 'the-token', header: 'x-token' } as const
  await upload(program, `${url}?key=s3cret`, { sign }).catch(() => 'not acknowledged')
  await program.line(/encoding\.started/)
  expect(program.output()).toContain('Cannot POST /webhooks/media?key=… with …')
  expect(program.output()).not.toMatch(/s3cret|the-token/)
})

test('emulate --json prints no deliveries', async () => {
  const program = start(['emulate', '--port', '0', '--access-token', token, '--time-scale', '0.001', '--json'])
  await upload(program, await serveWebhook(answering(200)))
  program.interrupt()
  expect(await program.code).toBe(0)
  expect(program.output()).toMatch(/^\{.*\}\n$/)
})
