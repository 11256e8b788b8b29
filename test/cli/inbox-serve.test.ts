import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { sqliteInbox } from '../../src/inbox/sqlite.ts'
import { createReceiver, unverified } from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { freshPath } from '../inbox/sqlite/sqlite-tests.ts'
import { silent } from '../support/silent.ts'
import { finish, start } from './program.ts'

/** Makes an inbox in a file, with a dead letter, that a receiver has open. */
async function openShop() {
  const path = await freshPath()
  const retry = { attempts: 1 }
  const receiver = createReceiver({ verify: unverified(), inbox: sqliteInbox({ path }), logger: silent, retry })
  onTestFinished(async () => void (await receiver.close({ timeoutMs: 1_000 })))
  const state = { works: false, handled: 0 }
  receiver.onAny(
    () => {
      if (!state.works) throw new Error('the catalogue is down')
      state.handled++
    },
    { name: 'publish' },
  )
  await deliver(receiver, samplePayload('encoding.finished', { media_id: 'a-film', title: 'Holiday.mp4' }))
  await expect.poll(async () => (await receiver.inbox.stats()).deadLetters).toBe(1)
  return { path, receiver, state }
}

/** Opens the URL with the token, as a browser does. */
async function signIn(printed: string) {
  const { status, headers } = await fetch(printed, { redirect: 'manual' })
  expect(status).toBe(303)
  const [cookie = ''] = headers.getSetCookie()[0]?.split('; ') ?? []
  return { url: new URL(headers.get('location') ?? '', printed).href, cookie }
}

test('inbox serve shows the inbox of a running server, and replays its dead letters', async () => {
  const { path, receiver, state } = await openShop()
  const program = start(['inbox', path, 'serve', '--port', '0'])
  const [, printed = ''] = /: (http:\S+)$/.exec(await program.line(/^Dashboard of /)) ?? []
  const { url, cookie } = await signIn(printed)
  const html = await (await fetch(url, { headers: { cookie } })).text()
  expect(html).toContain('the catalogue is down')
  expect(html).toContain('All processes that use this inbox.')
  expect(await (await fetch(`${url}media?id=a-film`, { headers: { cookie } })).text()).toContain('Holiday.mp4')

  state.works = true
  const [dead] = await receiver.inbox.deadLetters.list()
  const body = new URLSearchParams({ key: dead?.key ?? '' })
  const headers = { cookie, origin: new URL(url).origin }
  const acted = await fetch(`${url}replay`, { method: 'POST', body, headers })
  expect(await acted.text()).toContain('1 dead letter replayed.')
  await expect.poll(() => state.handled).toBe(1)
  program.interrupt()
  const record = 'replay requested on the dashboard\nreplay finished on the dashboard\n'
  expect([await program.code, program.errors()]).toEqual([0, record])
})

test('inbox serve --redact hides payloads, and answers no request without the token', async () => {
  const { path } = await openShop()
  const program = start(['inbox', path, 'serve', '--port', '0', '--redact', '--json'])
  const { url, cookie } = await signIn(JSON.parse(await program.line(/^\{/)).url)
  const html = await (await fetch(`${url}media?id=a-film`, { headers: { cookie } })).text()
  expect(html).toContain('encoding.finished')
  expect(html).not.toContain('Holiday.mp4')
  const rejected = await fetch(url)
  expect([rejected.status, await rejected.text()]).toEqual([403, expect.stringContaining('the server printed')])
})

test('inbox serve says what to do when its port is taken, and rejects the flags of other actions', async () => {
  const { path } = await openShop()
  const taken = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void taken.close())
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  const { code, errors } = await finish(['inbox', path, 'serve', '--port', `${port}`])
  expect([code, errors]).toEqual([1, expect.stringContaining(`port ${port} is taken`)])
  expect((await finish(['inbox', path, 'serve', '--all'])).errors).toContain('serve does not take --all')
  expect((await finish(['inbox', path, 'stats', '--redact'])).errors).toContain('stats does not take --redact')
})
