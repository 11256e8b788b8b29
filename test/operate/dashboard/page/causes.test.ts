import { expect, test } from 'vitest'
import type { DeadLetter, ReadableInbox } from '../../../../src/inbox/reading.ts'
import { createDashboard } from '../../../../src/operate/dashboard/dashboard.ts'
import { dashboard } from '../../../../src/operate/dashboard/index.ts'
import { describeInBrowser, openPage } from '../../../support/browser.ts'
import { serve } from '../../../support/serve.ts'
import { silent } from '../../../support/silent.ts'
import { failing } from '../failing-receiver.ts'
import { firstCause, notice, openInbox } from './operators.ts'

/** Makes a dead letter that could not be parsed so many minutes ago. */
function unreadable(reason: string, minutesAgo: number): DeadLetter {
  const receivedAt = new Date(Date.now() - minutesAgo * 60_000)
  return {
    key: `unreadable:${made++}`,
    event: undefined,
    unreadable: { reason, receivedAt, eventId: undefined, body: new Uint8Array() },
    receivedAt,
    attempts: 0,
    completed: [],
    failures: [],
    diedAt: receivedAt,
  }
}

let made = 0

/** Makes the page of an inbox with these dead letters, newest first. */
function pageOf(dead: readonly DeadLetter[]) {
  const inbox: ReadableInbox = {
    stats: () => ({ waiting: 0, running: 0, retrying: 0, deadLetters: dead.length }),
    deadLetters: {
      list: ({ limit = 100, offset = 0 } = {}) => dead.slice(offset, offset + limit),
      get: () => undefined,
      replay: () => false,
      discard: () => false,
    },
  }
  return createDashboard({ inbox, name: 'other', logger: silent }, { authorize: () => true })
}

const read = async (dead: readonly DeadLetter[]) => (await pageOf(dead).fetch(new Request('http://localhost/'))).text()

test('a page of one cause has what its card has, and the calls of its newest example instead of one text 25 times', async () => {
  const { receiver } = await failing(30)
  const page = dashboard(receiver, { authorize: () => true })
  const at = async (place: string) => (await page.fetch(new Request(`http://localhost${place}`))).text()
  const [, place = ''] = /href="(\/dead-letters\?cause=\w+)"/.exec(await at('/')) ?? []
  const html = await at(place)
  expect(html).toMatch(/first <time[^>]*>\d+ s ago.*last <time.*in the last hour.*in the hour before/s)
  expect(html.match(/knows no media/g)).toHaveLength(2)
  const [, stack = ''] = /<pre dir="ltr">(.*?)<\/pre>/s.exec(html) ?? []
  expect(stack).toMatch(/^Error: the catalogue knows no media &quot;media-30&quot;\nat .*failing-receiver\.ts:\d+:\d+/)
  expect(stack).not.toMatch(/src\/(handlers|receiver|inbox)|node:|node_modules/)
})

describeInBrowser('a cause', () => {
  test('keeps the time of its first failure when a replay fails', async () => {
    const { receiver } = await failing(1)
    const page = await openInbox(receiver, { javaScriptEnabled: false })
    const times = async () =>
      Promise.all((await firstCause(page).locator('time').all()).map((time) => time.getAttribute('datetime')))
    const before = await times()
    const [died] = await receiver.inbox.deadLetters.list()
    await firstCause(page).getByRole('button', { name: 'Replay it' }).click()
    await notice(page).getByText('1 dead letter replayed').waitFor()
    await expect.poll(async () => (await receiver.inbox.deadLetters.list())[0]?.diedAt).not.toEqual(died?.diedAt)
    await page.reload()
    const [again] = await receiver.inbox.deadLetters.list()
    expect(before).toEqual([died?.failedAttempts?.[0]?.failedAt.toISOString(), died?.diedAt.toISOString()])
    expect(await times()).toEqual([died?.failedAttempts?.[0]?.failedAt.toISOString(), again?.diedAt.toISOString()])
  })

  test('has a text without what differs, and how many failed in the last two hours', async () => {
    const url = await serve(
      pageOf([1, 70, 90, 2_000].map((minutes) => unreadable(`no "title" after ${minutes} bytes`, minutes))).node,
    )
    const cause = firstCause(await openPage({ url }))
    expect(await cause.locator('.reason').textContent()).toBe('Could not be parsed: no “#” after # bytes')
    expect(await cause.locator('.lately').textContent()).toBe('1 in the last hour 2 in the hour before')
    expect(await cause.locator('.bars').getAttribute('d')).toMatch(/^M0.5 40(m4 0){22}(V[\d.]+h3V40m1 0){2}$/)
  })

  test.each([1280, 390])('shows two lines of a long text, and aligns its numbers (%d pixels)', async (width) => {
    const url = await serve(pageOf([unreadable('words '.repeat(200), 1)]).node)
    const page = await openPage({ url }, { viewport: { width, height: 800 } })
    const lines = `(({ clientHeight }, { lineHeight }) => clientHeight / parseFloat(lineHeight))(
      document.querySelector('.reason'), getComputedStyle(document.querySelector('.reason')))`
    expect(await page.evaluate(lines)).toBeCloseTo(2, 1)
    const figures = "getComputedStyle(document.querySelector('.lately')).fontVariantNumeric"
    expect(await page.evaluate(figures)).toBe('tabular-nums')
  })
})

test('the overview says that only the newest 10,000 dead letters are counted', async () => {
  const dead = Array.from({ length: 10_001 }, () => unreadable('too short', 1))
  expect(await read(dead.slice(0, 9_999))).not.toContain('Only the newest')
  expect(await read(dead)).toContain('Only the newest 10,000 are counted here.')
})

test('the overview is short with the longest causes', async () => {
  const reasons = ['a', 'b', 'c', 'd', 'e', 'f'].map(
    (letter) => `"><img src=x onerror=alert(1)>${letter.repeat(9_000)}`,
  )
  const dead = reasons.flatMap((reason) => Array.from({ length: 24 }, (_, hour) => unreadable(reason, hour * 60 + 1)))
  const html = await read(dead)
  expect(html).toContain('All 6 causes')
  expect(html).not.toContain('<img')
  expect(html.length).toBeLessThan(40_000)
})

test('deliveries that could not be parsed are not offered a replay as if it could help', async () => {
  const html = await read([unreadable('the body is not JSON', 1), unreadable('the body is not JSON', 2)])
  expect(html).toContain('Parse all 2 again')
  expect(html).toContain('Parsing again helps only after you have deployed a version')
  expect(html).not.toContain('Replay all')
})
