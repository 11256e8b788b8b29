import { expect, test, vi } from 'vitest'
import { type Dashboard, dashboard } from '../../../src/operate/dashboard/index.ts'
import { silent } from '../../support/silent.ts'
import { receiverWith, send } from './failing-receiver.ts'

const read = async (page: Dashboard, route: string) =>
  (await page.fetch(new Request(`http://localhost/${route}`))).text()

const stop = (page: Dashboard, key: string) =>
  page.fetch(
    new Request('http://localhost/stop-handler', {
      method: 'POST',
      body: new URLSearchParams({ key, back: `event?key=${encodeURIComponent(key)}` }),
      headers: { host: 'localhost', origin: 'http://localhost' },
    }),
  )

/** A receiver whose handler hangs in the first attempt at each event, and its running events. */
async function hanging(mediaIds: readonly string[]) {
  const logged: object[] = []
  const logger = { ...silent, warn: (details: object) => void logged.push(details) }
  const receiver = receiverWith({ logger })
  receiver.onAny((_, { attempt }) => (attempt === 1 ? new Promise(() => {}) : undefined))
  for (const mediaId of mediaIds) await send(receiver, mediaId)
  const { events } = receiver.inbox
  await expect.poll(async () => (await receiver.inbox.stats()).running).toBe(mediaIds.length)
  const running = (await events?.list({ state: 'running', order: 'oldest' }))?.events ?? []
  return { receiver, events, logged, keys: running.map(({ key }) => key), running }
}

test('a running event is stopped, which is logged with the user', async () => {
  const { receiver, keys, logged } = await hanging(['a-film'])
  const page = dashboard(receiver, { authorize: () => ({ user: 'ana' }) })
  const address = `event?key=${encodeURIComponent(keys[0] ?? '')}`
  const html = await read(page, address)
  expect(html).toContain('Running since')
  expect(html).toContain('action="/stop-handler"')
  const answer = await stop(page, keys[0] ?? '')
  const after = await read(page, (answer.headers.get('location') ?? '').slice(1))
  expect(after).toContain('1 event stopped. A retry follows, unless that was the last attempt.')
  await expect.poll(async () => (await receiver.inbox.stats()).running).toBe(0)
  expect(logged).toContainEqual(
    expect.objectContaining({ user: 'ana', action: 'stop-handler', selection: { scope: 'keys', keys } }),
  )
  const again = await stop(page, keys[0] ?? '')
  expect(await read(page, (again.headers.get('location') ?? '').slice(1))).toContain('the handler had already ended')
})

test('a reader sees no button, and may stop nothing', async () => {
  const { receiver, keys } = await hanging(['a-film'])
  const page = dashboard(receiver, { authorize: () => 'read' })
  const html = await read(page, `event?key=${encodeURIComponent(keys[0] ?? '')}`)
  expect(html).toContain('Running since')
  expect(html).not.toContain('stop-handler')
  expect((await stop(page, keys[0] ?? '')).status).toBe(403)
  expect((await receiver.inbox.stats()).running).toBe(1)
})

test('the list of running events says for how long and where they run, longest first', async () => {
  const { receiver, running } = await hanging(['film-1', 'film-2'])
  const shown = running.map((record, index) => ({
    ...record,
    startedAt: new Date(Date.now() - (index === 0 ? 20_500 : 3_605_000)),
    process: 'web-1:4711',
  }))
  const events = { ...receiver.inbox.events, states: ['running'], list: () => ({ events: shown }) }
  const inbox = { stats: () => receiver.inbox.stats(), deadLetters: receiver.inbox.deadLetters, events }
  const page = dashboard(
    { inbox, setup: receiver.setup, sender: receiver.sender, observe: vi.fn() } as never as typeof receiver,
    {
      authorize: () => true,
    },
  )
  const rows = (await read(page, 'events?state=running')).match(/<tr>.*?<\/tr>/gs) ?? []
  expect(rows.slice(1).map((row) => row.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' '))).toEqual([
    expect.stringMatching(/film-2 .*Running onAny for 60 min in web-1:4711/),
    expect.stringMatching(/film-1 .*Running onAny for 20 s in web-1:4711/),
  ])
})
