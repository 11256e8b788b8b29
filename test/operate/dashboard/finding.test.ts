import { describe, expect, test } from 'vitest'
import type { DeadLetter, ReadableInbox } from '../../../src/inbox/reading.ts'
import { sqliteInbox } from '../../../src/inbox/sqlite.ts'
import { PermanentFailure } from '../../../src/index.ts'
import { createDashboard } from '../../../src/operate/dashboard/dashboard.ts'
import { type Dashboard, dashboard } from '../../../src/operate/dashboard/index.ts'
import { matchesFilter, readDeadFilter } from '../../../src/operate/dashboard/reading/dead-filter.ts'
import { Redaction } from '../../../src/operate/dashboard/reading/redaction.ts'
import { freshPath } from '../../inbox/sqlite/sqlite-tests.ts'
import { silent } from '../../support/silent.ts'
import { failing, receiverWith, send, untilDead } from './failing-receiver.ts'

const operators = { authorize: () => true }

const read = async (page: Dashboard, route: string) =>
  (await page.fetch(new Request(`http://localhost/${route}`))).text()

const rowsIn = (html: string) => html.match(/<tr>/g)?.length ?? 0

const deadLetter = (at: string, ...failures: DeadLetter['failures']): DeadLetter => {
  const diedAt = new Date(at)
  return { key: at, event: undefined, receivedAt: diedAt, attempts: 1, completed: [], failures, diedAt }
}

describe('a filter of dead letters', () => {
  const dead = deadLetter(
    '2026-03-01T12:00:00Z',
    { handler: 'publish', message: 'The catalogue is down' },
    { handler: 'mail', message: 'No such address' },
  )

  test.each([
    ['', true],
    ['text=CATALOGUE', true],
    ['text=+catalogue+', true],
    ['text=shelf', false],
    ['text=.*', false],
    ['handler=publish', true],
    ['handler=pub', false],
    ['handler=mail&text=address', true],
    // Both are about the same failure.
    ['handler=mail&text=catalogue', false],
    ['since=2026-03-01T12:00', true],
    ['since=2026-03-01T12:01', false],
    ['before=2026-03-01T12:01', true],
    ['before=2026-03-01T12:00:00Z', false],
    ['since=yesterday&before=', true],
    ['cause=none', false],
  ])('with %j is %s', (query, found) => {
    expect(matchesFilter(dead, readDeadFilter(new URLSearchParams(query)), new Redaction(undefined, silent))).toBe(
      found,
    )
  })
})

/** Makes dead letters of two handlers. */
async function mixed() {
  const { receiver, state } = await failing(3)
  receiver.on('encoding.failed', () => Promise.reject(new Error('no such address')), { name: 'mail' })
  for (const media of ['a', 'b']) await send(receiver, media, { type: 'encoding.failed' })
  await untilDead(receiver, 5)
  return { receiver, state, page: dashboard(receiver, operators) }
}

describe('the dead letters', () => {
  test('are found by what their handlers said, and by handler', async () => {
    const { page } = await mixed()
    expect(rowsIn(await read(page, 'dead-letters?text=ADDRESS'))).toBe(3)
    const html = await read(page, 'dead-letters?handler=publish&since=2020-01-01T00:00')
    expect(rowsIn(html)).toBe(4)
    expect(html).toContain('1–3 of 3')
    expect(html).toContain('Replay all 3')
    expect(html).toContain('<option value="mail">')
    expect(html).toMatch(/name="since" value="2020-01-01T00:00"/)
  })

  test('that match are discarded, and others stay', async () => {
    const { receiver, page } = await mixed()
    const form = { scope: 'found', text: 'address', until: String(Date.now()), confirmed: 'yes' }
    const headers = { host: 'localhost', origin: 'http://localhost' }
    const init = { method: 'POST', body: new URLSearchParams(form), headers }
    expect((await page.fetch(new Request('http://localhost/discard', init))).status).toBe(303)
    const left = await receiver.inbox.deadLetters.list()
    expect(left.map(({ event }) => event?.type)).toEqual(Array(3).fill('encoding.finished'))
  })

  test('are found by title, and those that match are replayed', async () => {
    const { receiver, state, page } = await mixed()
    await send(receiver, 'c', { title: 'Our Wedding.mp4' })
    await untilDead(receiver, 6)
    const html = await read(page, 'dead-letters?text=wedding&handler=publish')
    expect(html).toContain('1–1 of 1')
    expect(html).toContain('Our Wedding.mp4')
    expect(await read(page, 'dead-letters?text=wedding&handler=mail')).toContain('No dead letter matches.')
    state.works = true
    const form = { scope: 'found', text: 'wedding', until: String(Date.now()) }
    const headers = { host: 'localhost', origin: 'http://localhost' }
    await page.fetch(
      new Request('http://localhost/replay', { method: 'POST', body: new URLSearchParams(form), headers }),
    )
    await untilDead(receiver, 5)
    expect(await read(page, 'dead-letters?text=wedding')).toContain('No dead letter matches.')
  })

  test('that do not match lead to all of them', async () => {
    const { page } = await mixed()
    const html = await read(page, 'dead-letters?text=shelf')
    expect(html).toMatch(/No dead letter matches\. <a href="\/dead-letters">Clear the filter/)
    expect(html).not.toContain('method="post"')
  })

  test('say which of them a page shows, and the filter stays on the next one', async () => {
    const { receiver } = await failing(120)
    const html = await read(dashboard(receiver, operators), 'dead-letters?handler=publish&page=5')
    expect(html).toContain('101–120 of 120')
    expect(html).toContain('/dead-letters?handler=publish&amp;page=4')
  })
})

describe('the events', () => {
  test('say which of them a page shows, and how many there are if the inbox has counted them', async () => {
    const { receiver } = await failing(70)
    const page = dashboard(receiver, operators)
    const html = await read(page, 'events?state=dead')
    expect(html).toContain('1–25 of 70')
    expect(await read(page, 'events')).toMatch(/1–25(?! of)/)
    const older = /href="\/(events\?[^"]*cursor=[^"]*)"/.exec(html)?.[1]?.replaceAll('&amp;', '&')
    expect(await read(page, older ?? '')).toContain('26–50 of 70')
  })

  test('are found by title unless they were handled, which the page says', async () => {
    const receiver = receiverWith({
      inbox: sqliteInbox({ path: await freshPath() }),
      retry: { baseMs: 86_400_000, maxMs: 86_400_000 },
    })
    await receiver.ready()
    receiver.on('encoding.finished', () => Promise.reject(new PermanentFailure('no')), { name: 'dies' })
    receiver.on('encoding.failed', () => Promise.reject(new Error('no')), { name: 'retries' })
    receiver.on('file.received', () => {}, { name: 'works' })
    const types = ['encoding.finished', 'encoding.failed', 'file.received']
    for (const type of types) {
      await send(receiver, `holiday of ${type}`, { type, title: 'Our Holiday.mp4' })
      await send(receiver, `other of ${type}`, { type, title: 'Other.mp4' })
    }
    await expect
      .poll(() => receiver.inbox.stats())
      .toMatchObject({ deadLetters: 2, retrying: 2, running: 0, waiting: 0 })
    const page = dashboard(receiver, operators)
    const html = await read(page, 'events?title=HOLIDAY')
    expect(html).toContain('1–2 of 2')
    expect(html).toMatch(/holiday of encoding\.failed.*holiday of encoding\.finished/s)
    expect(html).toContain('Titles and payloads are not kept after an event is handled.')
    expect(html).toContain('the newest 1,000 events of each state.')
    expect(await read(page, 'events?title=holiday&state=dead')).toContain('1–1 of 1')
    expect(await read(page, 'events?title=holiday&type=encoding.failed')).toContain('1–1 of 1')
    expect(await read(page, 'events?title=holiday&state=handled')).toContain('No event matches.')
    expect(await read(page, 'events.jsonl?title=holiday')).toMatch(/^.*"Our Holiday.mp4".*\n.*"Our Holiday.mp4".*\n$/)
    // What was typed into the search of all pages may have been a title.
    expect(await read(page, 'media?id=holiday')).toContain('href="/events?title=holiday"')
  })

  test('that a title finds are shown page by page', async () => {
    const { receiver } = await failing(60)
    const page = dashboard(receiver, operators)
    const title = encodeURIComponent((await receiver.inbox.deadLetters.list())[0]?.event?.title ?? '')
    expect(await read(page, `events?title=${title}`)).toContain('1–25 of 60')
    const html = await read(page, `events?title=${title}&page=3`)
    expect(html).toContain('51–60 of 60')
    // Only the selected ones: a form with all of them would name the state, and not the title.
    expect(html).not.toContain('value="events"')
  })

  test('of which none matches lead to all of them', async () => {
    const page = dashboard(receiverWith(), operators)
    expect(await read(page, 'events?type=file.received')).toMatch(
      /No event matches\. <a href="\/events">Clear the filter/,
    )
    expect(await read(page, 'events')).toContain('Accepted events appear here.')
    expect(await read(page, 'dead-letters')).toMatch(/no event was given up\. <a href="\/events">/)
  })
})

test('of more dead letters than are read, a list says that there are more', async () => {
  const all = Array.from({ length: 10_000 }, (_, index) =>
    deadLetter(new Date(index).toISOString(), { handler: 'publish', message: 'no' }),
  )
  const list = ({ limit = 100, offset = 0 } = {}) => all.slice(offset, offset + limit)
  const inbox: ReadableInbox = {
    stats: () => ({ waiting: 0, running: 0, retrying: 0, deadLetters: 12_000 }),
    deadLetters: { list, get: () => undefined, replay: () => false, discard: () => false },
  }
  const page = createDashboard({ inbox, name: 'other', logger: silent }, operators)
  const html = await read(page, 'dead-letters?text=no')
  expect(html).toContain('1–25 of at least 10,000')
  expect(html).toContain('Only the newest 10,000 dead letters are searched.')
  expect(html).toContain('>Replay all<')
  // A cause can have more of them than were counted, and all are replayed.
  for (const list of ['', 'dead-letters']) expect(await read(page, list)).toMatch(/>Replay all<.*>Discard all…</)
})
