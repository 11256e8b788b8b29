import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bullmqInbox } from '../../../src/inbox/bullmq.ts'
import { postgresInbox } from '../../../src/inbox/postgres.ts'
import { queueInbox } from '../../../src/inbox/queue.ts'
import { sqliteInbox } from '../../../src/inbox/sqlite.ts'
import { type InboxDefinition, lruStore, memoryInbox } from '../../../src/index.ts'
import { type Dashboard, dashboard } from '../../../src/operate/dashboard/index.ts'
import { deliver } from '../../../src/testing/index.ts'
import { freshPath } from '../../inbox/sqlite/sqlite-tests.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { PostgresServer } from '../../support/postgres/postgres-server.ts'
import { findRedis } from '../../support/redis/find-redis.ts'
import { RedisServer } from '../../support/redis/redis-server.ts'
import { future, upgraded } from '../../support/unreadable.ts'
import { receiverWith, send, untilDead } from './failing-receiver.ts'

const read = async (page: Dashboard, place: string) =>
  (await page.fetch(new Request(`http://localhost/${place}`))).text()

async function act(page: Dashboard, route: string, form: Record<string, string>): Promise<string> {
  const headers = { host: 'localhost', origin: 'http://localhost' }
  const init = { method: 'POST', body: new URLSearchParams(form), headers }
  const response = await page.fetch(new Request(`http://localhost/${route}`, init))
  return read(page, (response.headers.get('location') ?? '').slice(1))
}

interface Place {
  readonly inbox: InboxDefinition
  readonly remembers: boolean
  /** `true` if it keeps unreadable deliveries. */
  readonly keeps: boolean
}

function checkPages(makePlace: () => Promise<Place>): void {
  test('shows every page, leads from a media item to its failure, and replays it', async () => {
    const { inbox, remembers, keeps } = await makePlace()
    const receiver = receiverWith({ inbox })
    await receiver.ready()
    const state = { works: false, published: 0 }
    receiver.onAny(() => {}, { name: 'index' })
    receiver.on(
      'encoding.finished',
      ({ title }) => {
        if (!state.works) throw new TypeError(`no room for “${title}”`)
        state.published++
      },
      { name: 'publish' },
    )
    await send(receiver, 'a film', { type: 'file.received' })
    await send(receiver, 'a film', { title: 'Holiday.mp4' })
    await untilDead(receiver, 1)
    // By then, the other event is also handled, and is unknown if the inbox forgets handled events.
    await expect.poll(() => receiver.inbox.stats()).toMatchObject({ waiting: 0, running: 0, retrying: 0 })
    const page = dashboard(receiver, { authorize: () => true })
    expect(await read(page, '')).toMatch(/Why events were given up.*publish.*no room for.*Replay it/s)
    const events = await read(page, 'events?state=dead')
    expect(events).toContain('no room for')
    const media = await read(page, 'media?id=a+film')
    expect(media.includes('file.received')).toBe(remembers)
    const [, key = ''] = /event\?key=([^"]+)">[^<]*<bdi>encoding\.finished/.exec(media) ?? []
    const story = await read(page, `event?key=${key}`)
    expect(story).toMatch(/Attempt 1 failed.*Attempt 2 failed.*Given up.*not run again: <bdi>index.*Holiday/s)

    state.works = true
    expect(await act(page, 'replay', { key: decodeURIComponent(key.replaceAll('+', ' ')) })).toContain(
      '1 dead letter replayed.',
    )
    await expect.poll(() => state.published).toBe(1)
    await expect.poll(() => read(page, `event?key=${key}`)).toMatch(remembers ? /Handled in attempt/ : /it was handled/)
    await expect.poll(() => read(page, '')).toContain('There are no dead letters.')
    expect(await read(page, '')).toContain(
      receiver.inbox.activity ? 'All processes that use this inbox' : 'This process only',
    )

    const rejected = (await deliver(receiver, future)).status
    expect(await read(page, '')).toMatch(/Rejected deliveries by reason.*malformed.*<td>1<\/td>/s)
    if (!keeps) return
    expect(await read(page, '')).toMatch(/Failed runs by handler.*publish.*<td>2<\/td>/s)
    expect(rejected).toBe(400)
    await untilDead(receiver, 1)
    const mention = /event\?key=([^"]+)">unreadable/
    // The page shows what it has just read for a little longer, if the inbox was slow.
    await expect.poll(() => read(page, 'media?id=m1')).toMatch(mention)
    const [, unreadable = ''] = mention.exec(await read(page, 'media?id=m1')) ?? []
    expect(await read(page, `event?key=${unreadable}`)).toMatch(
      /Unreadable delivery.*field media_id: expected a non-empty string/s,
    )
    await upgraded(async () => {
      await act(page, 'replay', { key: decodeURIComponent(unreadable) })
      await expect.poll(async () => (await receiver.inbox.stats()).deadLetters).toBe(0)
    })
  })
}

test('an event without a handler is counted, and named as a reason why an event is not known', async () => {
  const receiver = receiverWith()
  receiver.on('encoding.finished', () => {})
  const page = dashboard(receiver, { authorize: () => true })
  await send(receiver, 'a-film', { type: 'file.received' })
  expect(await read(page, '')).toMatch(/Without a handler<\/figcaption><p class="figure">1 </)
  expect(await read(page, 'media?id=a-film')).toContain('its type has no handler')
  expect(await read(page, 'event?key=none')).toContain('its type has no handler')
})

test('the handlers that failed are counted since the page was made, if the inbox does not count', async () => {
  const receiver = receiverWith()
  receiver.on('encoding.finished', () => Promise.reject(new Error('no')), { name: 'publish' })
  const page = dashboard(receiver, { authorize: () => true })
  await send(receiver, 'a-film')
  await untilDead(receiver, 1)
  expect(await read(page, '')).toMatch(/Failed runs by handler.*publish.*<td>2<\/td>/s)
})

describe('the memory inbox', () => {
  checkPages(async () => ({ inbox: memoryInbox(), remembers: false, keeps: false }))
})

describe('the SQLite inbox', () => {
  checkPages(async () => ({ inbox: sqliteInbox({ path: await freshPath() }), remembers: true, keeps: true }))
})

describe.skipIf(!findPostgres())('the Postgres inbox', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await PostgresServer.start()
  })
  afterAll(() => server?.remove())

  checkPages(async () => ({ inbox: postgresInbox({ connection: server.url }), remembers: true, keeps: true }))
})

describe.skipIf(!findRedis())('the BullMQ inbox', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await RedisServer.start()
  })
  afterAll(() => server?.remove())

  checkPages(async () => ({ inbox: bullmqInbox({ connection: server.url }), remembers: false, keeps: true }))
})

describe('the queue inbox', () => {
  test('is said to know nothing of its events', async () => {
    const receiver = receiverWith({ inbox: queueInbox({ send() {}, store: lruStore() }) })
    const page = dashboard(receiver, { authorize: () => true })
    const html = await read(page, '')
    expect(html).toContain('hands its events to a queue')
    expect(html).not.toContain('Waiting')
    expect(await read(page, 'dead-letters')).toContain('Dead letters are in the queue.')
    expect(await read(page, 'events')).toContain('cannot list its events')
    expect(await read(page, 'event?key=1')).toContain('lists only dead letters')
    expect(await read(page, 'media?id=1')).toContain('lists only dead letters')
  })
})
