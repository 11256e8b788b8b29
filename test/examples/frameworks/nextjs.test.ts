import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { provePlatform } from '../../platforms/prove-platform.ts'
import { serverDeployment } from '../../platforms/server-deployment.ts'
import { type InstalledExample, installExample } from './install-example.ts'

const token = 'a-token-of-the-test'
let example: InstalledExample

beforeAll(async () => {
  example = await installExample('nextjs', { handlers: 'lib/handlers.ts', besides: 'nextjs-pages' })
  await example.script('build')
})

test('the build needs no secret and opens no file', () => {
  expect(existsSync(join(example.folder, '.next/BUILD_ID'))).toBe(true)
  expect(existsSync(join(example.folder, 'inbox.db'))).toBe(false)
})

const files = mkdtempSync(join(tmpdir(), 'inboxes-of-nextjs-'))
afterAll(() => rmSync(files, { recursive: true }))

const start = (env: Record<string, string> = {}) =>
  serverDeployment({
    command: process.execPath,
    args: ['node_modules/next/dist/bin/next', 'start', '--hostname', '127.0.0.1'],
    cwd: example.folder,
    env: { WEBHOOK_TOKEN: token, INBOX_PATH: join(files, `${crypto.randomUUID()}.db`), ...env },
    listening: /Ready in (.+)/,
    path: `/webhooks/media?token=${token}`,
  })

provePlatform('nextjs sqlite', () => start())

test('SIGTERM lets slow handlers finish, so that none of them runs again', async () => {
  const deployment = await start({ HANDLER_MS: '1500' })
  onTestFinished(() => deployment.stop())
  const ids = Array.from({ length: 4 }, () => crypto.randomUUID())
  for (const media_id of ids) {
    const response = await post(deployment.url, { type: 'encoding.finished', media_id })
    expect([response.status, await response.json()]).toEqual([200, { status: 'accepted' }])
  }
  await deployment.restart()
  const lines = ids.map((id) => `encoding.finished ${id} `)
  expect((await deployment.handled()).toSorted()).toEqual(lines.toSorted())
  expect(await (await post(deployment.url, { type: 'encoding.finished', media_id: ids[0] })).json()).toEqual({
    status: 'duplicate',
  })
})

test('an event that a killed server has left is handled when the next one starts, before any delivery', async () => {
  const deployment = await start({ HANDLER_MS: '1500' })
  onTestFinished(() => deployment.stop())
  await post(deployment.url, { type: 'encoding.finished', media_id: 'left' })
  await deployment.restart('SIGKILL')
  await expect.poll(() => deployment.handled()).toEqual(['encoding.finished left '])
})

describe('in the pages router', () => {
  test('the recipe takes deliveries', async () => {
    const { url, stop } = await start()
    onTestFinished(stop)
    const response = await post(`${new URL(`/api/webhooks/media?token=${token}`, url)}`, {
      type: 'encoding.finished',
      media_id: 'a-film',
    })
    expect([response.status, await response.json()]).toEqual([200, { status: 'accepted' }])
  })

  test('a body that the parser of Next.js consumed is answered with its code, and logged with the fix of the recipe', async () => {
    const deployment = await start()
    onTestFinished(() => deployment.stop())
    const signed = `${new URL('/api/signed', deployment.url)}`
    const response = await post(signed, { type: 'encoding.finished', media_id: 'a-film' })
    expect([response.status, await response.json()]).toMatchObject([500, { code: 'body_consumed' }])
    expect(deployment.output()).toContain('write export const config = { api: { bodyParser: false } } in the file')
  })
})

const post = (url: string, payload: object) =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(payload) })
