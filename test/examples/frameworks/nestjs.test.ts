import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { encodePayload, makeDelivery, samplePayload, signWithHmac } from '../../../src/testing/index.ts'
import { postJson } from '../../support/post-json.ts'
import { startProgram } from '../../support/program.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { proveExample } from './example.suite.ts'

const { folder } = proveExample('nestjs sqlite', {
  name: 'nestjs',
  handlers: 'src/handlers.ts',
  besides: 'nestjs-mounts',
  packages: ['@nestjs/platform-fastify@12'],
  built: 'dist/main.js',
  args: ['dist/main.js'],
})

/** Starts an application whose verifier needs the bytes, and posts a signed delivery to it. */
async function deliverSigned(env: Record<string, string>) {
  const program = await startProgram(
    process.execPath,
    ['dist/signed.js'],
    { cwd: folder(), env },
    /^listening on (.+)$/,
  )
  onTestFinished(() => void program.stop())
  const body = encodePayload(samplePayload('encoding.finished'))
  const url = `http://127.0.0.1:${program.captured}/signed`
  const { headers } = await makeDelivery(body, {
    url,
    sign: signWithHmac({ secret: 'a shared secret', header: 'x-signature' }),
  })
  const response = await fetch(url, {
    method: 'POST',
    headers: new Headers(headers as Headers),
    body: new Uint8Array(body),
  })
  return { answer: [response.status, await response.json()], output: program.output }
}

test('a body that the parser of NestJS consumed is answered with its code, and logged with the fix', async () => {
  const { answer, output } = await deliverSigned({})
  expect(answer).toMatchObject([500, { code: 'body_consumed' }])
  await expect.poll(output).toContain('NestFactory.create(AppModule, { rawBody: true })')
})

test('a signed delivery is accepted with that fix', async () => {
  const { answer } = await deliverSigned({ RAW_BODY: 'true' })
  expect(answer).toEqual([200, { status: 'accepted' }])
})

test("on Fastify, the plugin takes deliveries beside the application's own GET", async () => {
  const env = { PORT: '0', WEBHOOK_TOKEN: 'a-token', INBOX_PATH: join(await temporaryFolder(), 'inbox.db') }
  const program = await startProgram(
    process.execPath,
    ['dist/fastify.js'],
    { cwd: folder(), env },
    /^listening on (.+)$/,
  )
  onTestFinished(() => void program.stop())
  const url = `http://127.0.0.1:${program.captured}/webhooks/media?token=a-token`
  const accepted = await postJson(url, { type: 'encoding.finished', media_id: 'a-film' })
  expect([accepted.status, await accepted.json()]).toEqual([200, { status: 'accepted' }])
  expect(await (await fetch(url)).text()).toBe('of the application')
  expect((await fetch(url, { method: 'PUT' })).status).toBe(405)
})
