import { describe, expect, onTestFinished, test } from 'vitest'
import { postJson } from '../../support/post-json.ts'
import { proveExample, token } from './example.suite.ts'

const { start } = proveExample('nextjs sqlite', {
  name: 'nextjs',
  handlers: 'lib/handlers.ts',
  besides: 'nextjs-pages',
  built: '.next/BUILD_ID',
  args: ['node_modules/next/dist/bin/next', 'start', '--hostname', '127.0.0.1'],
  listening: /Ready in (.+)/,
})

describe('in the pages router', () => {
  test('the recipe takes deliveries', async () => {
    const { url, stop } = await start()
    onTestFinished(stop)
    const response = await postJson(new URL(`/api/webhooks/media?token=${token}`, url), {
      type: 'encoding.finished',
      media_id: 'a-film',
    })
    expect([response.status, await response.json()]).toEqual([200, { status: 'accepted' }])
  })

  test('a body that the parser of Next.js consumed is answered with its code, and logged with the fix of the recipe', async () => {
    const deployment = await start()
    onTestFinished(() => deployment.stop())
    const signed = `${new URL('/api/signed', deployment.url)}`
    const response = await postJson(signed, { type: 'encoding.finished', media_id: 'a-film' })
    expect([response.status, await response.json()]).toMatchObject([500, { code: 'body_consumed' }])
    expect(deployment.output()).toContain('write export const config = { api: { bodyParser: false } } in the file')
  })
})
