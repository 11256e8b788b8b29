import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bullmqInbox } from '../../../../src/inbox/bullmq.ts'
import { postgresInbox } from '../../../../src/inbox/postgres.ts'
import { sqliteInbox } from '../../../../src/inbox/sqlite.ts'
import type { InboxDefinition } from '../../../../src/index.ts'
import { freshPath } from '../../../inbox/sqlite/sqlite-tests.ts'
import { describeInBrowser } from '../../../support/browser.ts'
import { findPostgres } from '../../../support/postgres/find-postgres.ts'
import { PostgresServer } from '../../../support/postgres/postgres-server.ts'
import { findRedis } from '../../../support/redis/find-redis.ts'
import { RedisServer } from '../../../support/redis/redis-server.ts'
import { post, receiverWith, send, untilDead } from '../failing-receiver.ts'
import { failed, mess } from '../mess.ts'
import { firstCause, handsOn, notice, serveInbox } from './operators.ts'

/** Makes a receiver whose handlers of encodings fail until they are in `fixed`. Another one indexes files. */
async function failing(inbox: InboxDefinition, counts: { readonly catalogue: number; readonly mail?: number }) {
  const receiver = receiverWith({ inbox })
  const fixed = new Set<string>()
  const handled: string[] = []
  const handle = (name: string, mediaId: string, error: string) => {
    if (!fixed.has(name)) throw new Error(error)
    handled.push(mediaId)
  }
  receiver.on('encoding.finished', ({ mediaId }) => handle('catalogue', mediaId, `no shelf for "${mediaId}"`), {
    name: 'catalogue',
  })
  receiver.on('encoding.failed', ({ mediaId }) => handle('mail', mediaId, '550 rejected'), { name: 'mail' })
  receiver.on('file.received', ({ mediaId }) => void handled.push(mediaId), { name: 'index' })
  await receiver.ready()
  const { catalogue, mail = 0 } = counts
  for (let index = 0; index < catalogue; index++) await send(receiver, `film-${index}`)
  for (let index = 0; index < mail; index++) await send(receiver, `clip-${index}`, { type: 'encoding.failed' })
  await untilDead(receiver, catalogue + mail)
  return { receiver, fixed, handled }
}

interface Place {
  readonly open: () => Promise<InboxDefinition>
  /** `true` if it keeps handled events for a while. Otherwise it cannot tell what never came once its alert ran. */
  readonly remembers: boolean
}

function checkTasks({ open, remembers }: Place): void {
  test('reads what became of a media item, and why', async () => {
    const { receiver } = await failing(await open(), { catalogue: 3 })
    await send(receiver, 'film-1', { type: 'file.received' })
    await expect.poll(() => receiver.inbox.stats()).toMatchObject({ waiting: 0, running: 0 })
    const { page, click, enter } = await handsOn(receiver)
    await enter('Media id or event key', 'film-1')
    await page.getByRole('heading', { name: 'Media' }).waitFor()
    const rows = await page.locator('tbody tr').allTextContents()
    expect(rows).toEqual([
      expect.stringMatching(/dead.*encoding\.finished.*no shelf for "film-1"/),
      ...(remembers ? [expect.stringMatching(/handled.*file\.received/)] : []),
    ])
    await click('link', 'encoding.finished')
    await page.getByRole('heading', { name: 'Why it was given up' }).waitFor()
  })

  test('reads what fails most, since when and how often lately, and finds the stack of its error', async () => {
    const { receiver } = await failing(await open(), { catalogue: 4, mail: 6 })
    const { page, click } = await handsOn(receiver)
    expect(await page.locator('.causes .count').allTextContents()).toEqual(['6', '4'])
    expect(await firstCause(page).textContent()).toMatch(
      /^6mail: Error: 550 rejected.*first \d+ s ago, last \d+ s ago.*6 in the last hour 0 in the hour before/,
    )
    await click('link', 'Show the dead letters of this cause', firstCause(page))
    await page.getByRole('heading', { name: '6 dead letters of one cause' }).waitFor()
    expect(await page.locator('#example pre').textContent()).toMatch(/^Error: 550 rejected\nat .*tasks\.test\.ts:/)
  })

  test.each([19, 146])('replays %d events that the fix repaired, and sees that they succeed', async (catalogue) => {
    const { receiver, fixed, handled } = await failing(await open(), { catalogue, mail: 2 })
    fixed.add('catalogue')
    const { page, click } = await handsOn(receiver)
    await click('button', `Replay all ${catalogue}`)
    await page.getByText(`${catalogue} dead letters replayed.`).waitFor()
    await page.getByText(`${catalogue} events handled since.`).waitFor()
    expect(handled).toHaveLength(catalogue)
  })

  test('pauses the handler that fails, and resumes it', async () => {
    const { receiver, fixed, handled } = await failing(await open(), { catalogue: 1 })
    const { page, click } = await handsOn(receiver)
    await click('button', 'Pause catalogue', firstCause(page))
    await notice(page).getByText('The handler catalogue is paused.').waitFor()
    fixed.add('catalogue')
    await send(receiver, 'a-film')
    await expect.poll(() => receiver.inbox.stats()).toMatchObject({ retrying: 1 })
    expect(handled).toEqual([])
    await click('button', 'Resume catalogue')
    await notice(page).getByText('The handler catalogue is resumed.').waitFor()
    await expect.poll(() => handled).toEqual(['a-film'])
  })

  test('pauses a handler without a failure, and resumes it', async () => {
    const { receiver, handled } = await failing(await open(), { catalogue: 0 })
    const { page, click } = await handsOn(receiver)
    await click('button', 'Pause index')
    await notice(page).getByText('The handler index is paused.').waitFor()
    await send(receiver, 'a-film', { type: 'file.received' })
    await expect.poll(() => receiver.inbox.stats()).toMatchObject({ retrying: 1 })
    await click('button', 'Resume index')
    await expect.poll(() => handled).toEqual(['a-film'])
  })

  test('reads who did what, and what was done to one event', async () => {
    const { receiver } = await failing(await open(), { catalogue: 3 })
    const others = await serveInbox(receiver, { authorize: () => ({ user: 'ben' }) })
    const [first, second] = await receiver.inbox.deadLetters.list()
    const reason = 'a test upload'
    await post(`${others}/discard`, { key: first?.key ?? '', confirmed: 'yes', reason })
    await post(`${others}/replay`, { key: second?.key ?? '' })
    await untilDead(receiver, 2)
    const { page, click, enter } = await handsOn(receiver)
    const operations = page.locator('#operations li')
    await expect
      .poll(() => operations.allTextContents())
      .toEqual([
        expect.stringMatching(/^ben replayed 1 event/),
        expect.stringMatching(/^ben discarded 1 event.*“a test upload”/),
      ])
    await enter('Media id or event key', second?.event?.mediaId ?? '')
    await click('link', 'encoding.finished')
    await page.getByRole('heading', { name: 'Why it was given up' }).waitFor()
    expect(await page.locator('#attempts > ol > li').allTextContents()).toEqual([
      expect.stringMatching(/^Received/),
      ...[1, 2].map((number) => expect.stringMatching(`^Attempt ${number} failed`)),
      expect.stringMatching(/^ben replayed 1 event/),
      ...[1, 2].map((number) => expect.stringMatching(`^Attempt ${number} failed`)),
      expect.stringMatching(/^Given up/),
    ])
  })

  test.runIf(remembers)('reads what never came, although its alert ran', async () => {
    const receiver = receiverWith({ inbox: await open() })
    const alerts: string[] = []
    receiver.expect(
      'encoding.started',
      { then: 'encoding.finished', within: 300, name: 'encoded' },
      ({ mediaId }) => void alerts.push(mediaId),
    )
    receiver.on('encoding.finished', () => {})
    await receiver.ready()
    for (const media of ['a-film', 'a-clip']) await send(receiver, media, { type: 'encoding.started' })
    await expect.poll(() => alerts.toSorted()).toEqual(['a-clip', 'a-film'])
    await send(receiver, 'a-clip')
    const { page, click } = await handsOn(receiver)
    await click('link', 'Expected 1 overdue')
    await page.getByText('overdue, came later').waitFor()
    expect(await page.locator('#overdue .rows tbody tr').allTextContents()).toEqual([
      expect.stringMatching(/overdue, still missing.*alert ran.*a-film.*encoding\.finished is missing.*Rule encoded/),
      expect.stringMatching(/overdue, came later.*a-clip.*encoding\.finished came \d+ s ago.*Rule encoded/),
    ])
  })
}

describeInBrowser('over SQLite, an operator', () => {
  checkTasks({ open: async () => sqliteInbox({ path: await freshPath() }), remembers: true })
})

describe.skipIf(!findPostgres())('with Postgres', () => {
  let server: PostgresServer
  let databases = 0
  beforeAll(async () => {
    server = await PostgresServer.start()
  })
  afterAll(() => server?.remove())

  const open = async () => postgresInbox({ connection: await server.createDatabase(`tasks${databases++}`) })
  describeInBrowser('an operator', () => checkTasks({ open, remembers: true }))
})

describe.skipIf(!findRedis())('with BullMQ', () => {
  let server: RedisServer
  let queues = 0
  beforeAll(async () => {
    server = await RedisServer.start()
  })
  afterAll(() => server?.remove())

  const open = async () => bullmqInbox({ connection: server.url, queue: `tasks${queues++}` })
  describeInBrowser('an operator', () => checkTasks({ open, remembers: false }))
})

describeInBrowser('among 2,000 events, an operator', () => {
  test('reads what fails most, since when and whether it gets worse on the first page: no click', async () => {
    const { receiver } = await mess()
    const { page } = await handsOn(receiver)
    const worst = (await firstCause(page).textContent()) ?? ''
    expect(worst).toMatch(/^260.*catalogue: TypeError: no shelf for “#”/)
    expect(worst).toMatch(/first 20 h ago, last \d+ min ago/)
    expect(worst).toMatch(/200 in the last hour 40 in the hour before/)
    const counts = await page.locator('.causes .count').allTextContents()
    expect(counts).toEqual(Object.values(failed).map(String))
    const { y = 0, height = 0 } = (await firstCause(page).boundingBox()) ?? {}
    expect(y + height).toBeLessThan(page.viewportSize()?.height ?? 0)
  })

  test('reads how many of a replay were handled, and how many failed again', async () => {
    const { receiver, fixed } = await mess()
    const { page, click } = await handsOn(receiver)
    const actions = page.locator('#operations li')
    await click('button', 'Replay all 5')
    await actions.getByText('5 events failed again, dead letters now.').waitFor()
    fixed.add('search')
    await click('button', 'Replay all 5')
    await actions.getByText('5 events handled since.').waitFor()
  })
})
