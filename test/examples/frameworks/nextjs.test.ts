import { describe, expect, onTestFinished, test } from 'vitest'
import manifest from '../../../package.json' with { type: 'json' }
import { postJson } from '../../support/post-json.ts'
import { proveExample, token } from './example.suite.ts'

const { buildOutput, start } = proveExample('nextjs sqlite', {
  name: 'nextjs',
  handlers: 'lib/handlers.ts',
  besides: 'nextjs-pages',
  built: '.next/BUILD_ID',
  args: ['node_modules/next/dist/bin/next', 'start', '--hostname', '127.0.0.1'],
  listening: /Ready in (.+)/,
})

/** Entries that need a package which the example has not installed. */
const withPeers = ['inbox/bullmq', 'inbox/postgres', 'inbox/pglite', 'opentelemetry']

test('the build of the example, and of a page that imports every other entry, writes no warning', async () => {
  expect(buildOutput()).not.toMatch(/\bwarnings?\b/i)
  const deployment = await start()
  onTestFinished(() => deployment.stop())
  const response = await fetch(new URL('/api/entries', deployment.url))
  const exported = (await response.json()) as Record<string, readonly string[]>
  const entries = Object.keys(manifest.exports).map((path) => path.slice(2))
  expect(Object.keys(exported)).toEqual(
    entries.filter((entry) => entry !== 'package.json' && !withPeers.includes(entry)),
  )
  expect(Object.values(exported)).not.toContainEqual([])
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
