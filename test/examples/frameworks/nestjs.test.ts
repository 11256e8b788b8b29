import { expect, onTestFinished, test } from 'vitest'
import { encodePayload, makeDelivery, samplePayload, signWithHmac } from '../../../src/testing/index.ts'
import { startProgram } from '../../support/program.ts'
import { proveExample } from './example.suite.ts'

const { folder } = proveExample('nestjs sqlite', {
  name: 'nestjs',
  handlers: 'src/handlers.ts',
  besides: 'nestjs-signed',
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
