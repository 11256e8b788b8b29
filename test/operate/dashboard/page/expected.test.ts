import { expect, test } from 'vitest'
import type { OpenExpectation, ReadableInbox } from '../../../../src/inbox/reading.ts'
import { sqliteInbox } from '../../../../src/inbox/sqlite.ts'
import type { Receiver, ReceiverOptions } from '../../../../src/index.ts'
import { createDashboard } from '../../../../src/operate/dashboard/dashboard.ts'
import { dashboard } from '../../../../src/operate/dashboard/index.ts'
import { freshPath } from '../../../inbox/sqlite/sqlite-tests.ts'
import { accessibilityFaults, describeInBrowser, openPage } from '../../../support/browser.ts'
import { silent } from '../../../support/silent.ts'
import { receiverWith, send, untilDead } from '../failing-receiver.ts'
import { openInbox, serveInbox } from './operators.ts'

const file = { type: 'file.received' }

/** Makes a receiver that expects the end of an encoding: soon, and in two hours. */
function expecting(inbox?: ReceiverOptions['inbox'], soon: () => void = () => {}): Receiver {
  const receiver = receiverWith({ retry: { attempts: 1 }, ...(inbox && { inbox }) })
  receiver.expect('encoding.started', { then: 'encoding.finished', within: 50, name: 'soon' }, soon)
  return receiver.expect('file.received', { then: 'encoding.finished', within: '2 h', name: 'encoded' }, () => {})
}

const read = async (receiver: Receiver, place = '') =>
  (await dashboard(receiver, { authorize: () => true }).fetch(new Request(`http://localhost/${place}`))).text()

/** Reads the pages of an inbox without events. */
function pageOf(expectations: Pick<ReadableInbox, 'expected'>, expected?: number) {
  const inbox: ReadableInbox = {
    stats: () => ({ waiting: 0, running: 0, retrying: 0, deadLetters: 0, expected }),
    deadLetters: { list: () => [], get: () => undefined, replay: () => false, discard: () => false },
    ...expectations,
  }
  const page = createDashboard({ inbox, name: 'other', logger: silent }, { authorize: () => true })
  return async (place: string) => (await page.fetch(new Request(`http://localhost/${place}`))).text()
}

const pageWith = (...open: readonly OpenExpectation[]) =>
  pageOf({ expected: (limit = 100) => open.slice(0, limit) }, open.length)

describeInBrowser('what is expected', () => {
  test.each([true, false])(
    'is a number that leads to its media items (with a script: %s)',
    async (javaScriptEnabled) => {
      const receiver = expecting()
      await send(receiver, 'a-film', file)
      const page = await openInbox(receiver, { javaScriptEnabled })
      const card = page.getByRole('listitem').filter({ hasText: 'Expected' })
      expect(await card.textContent()).toMatch(/^Expected1next due in 119 min$/)
      await page.getByRole('link', { name: 'Expected: 1' }).click()
      await page.getByRole('heading', { name: 'Expected' }).waitFor()
      expect(await page.locator('tbody tr').textContent()).toMatch(/^encodeda-filmin 119 min$/)
      await page.getByText('Nothing is overdue.').waitFor()
      await page.getByRole('link', { name: 'a-film' }).click()
      await page.getByRole('heading', { name: 'Media' }).waitFor()
      expect(await page.locator('.copyable code').textContent()).toBe('a-film')
    },
  )

  test('has no fault that axe finds, and fits into 360 pixels', async () => {
    const receiver = expecting(undefined, () => {
      throw new Error('x'.repeat(300))
    })
    const long = `media-${'x'.repeat(300)}`
    for (const type of ['file.received', 'encoding.started']) await send(receiver, long, { type })
    await untilDead(receiver, 1)
    const [dead] = await receiver.inbox.deadLetters.list()
    const url = await serveInbox(receiver)
    for (const colorScheme of ['light', 'dark'] as const)
      for (const width of [1_200, 360]) {
        const page = await openPage({ url }, { viewport: { width, height: 740 }, colorScheme })
        for (const place of ['', 'expected', `event?key=${encodeURIComponent(dead?.key ?? '')}`]) {
          await page.goto(`${url}/${place}`)
          expect([place, ...(await accessibilityFaults(page))]).toEqual([place])
          expect([place, await page.evaluate('document.scrollingElement.scrollWidth')]).toEqual([place, width])
        }
      }
  })
})

test('what is overdue is listed beside it, and its story names the rule and the event that began it', async () => {
  const receiver = expecting(undefined, () => {
    throw new Error('no operator answers')
  })
  await send(receiver, 'a-film', { type: 'encoding.started', title: 'Holiday.mp4' })
  await untilDead(receiver, 1)
  const html = await read(receiver, 'expected')
  expect(html).toContain('No event is expected.')
  expect(html).toMatch(/<bdi>expectation\.overdue<\/bdi>.*Holiday\.mp4.*no operator answers/s)
  expect(html).toContain('href="/events?type=expectation.overdue"')
  expect(await read(receiver, 'events?type=expectation.overdue')).toContain('no operator answers')
  const [dead] = await receiver.inbox.deadLetters.list()
  const story = await read(receiver, `event?key=${encodeURIComponent(dead?.key ?? '')}`)
  expect(story).toMatch(/<dt>Rule<\/dt><dd><bdi>soon<\/bdi>/)
  expect(story).toMatch(/<dt>Begun by<\/dt><dd><a href="\/event\?key=[^"]+"><bdi>encoding\.started</)
  expect(story).toContain('<dt>Due</dt>')
  expect(story).toContain('Payload of the event that began it')
})

/** Makes a receiver over a file whose overdue event was handled: its alert ran. */
async function alerted() {
  const receiver = expecting(sqliteInbox({ path: await freshPath() }))
  receiver.on('encoding.finished', () => {})
  await receiver.ready()
  await send(receiver, 'a-film', { type: 'encoding.started' })
  const overdue = async () => (await receiver.inbox.events?.list({ type: 'expectation.overdue' }))?.events ?? []
  await expect.poll(overdue).toMatchObject([{ state: 'handled' }])
  const [{ key = '' } = {}] = await overdue()
  return { receiver, story: () => read(receiver, `event?key=${encodeURIComponent(key)}`) }
}

test('an overdue event that was handled is still missing until the event that was expected comes', async () => {
  const { receiver, story } = await alerted()
  const missing = /!<\/span> <span>overdue, still missing.*<\/span><span class="state alert ran">/s
  for (const place of ['expected', 'events', 'media?id=a-film']) expect(await read(receiver, place)).toMatch(missing)
  expect(await read(receiver, 'expected')).toMatch(
    /By rule.*soon.*<td>1<\/td>.*<bdi>encoding\.finished<\/bdi> <span class="bad">is missing/s,
  )
  expect(await story()).toMatch(/<dt>Rule<\/dt><dd><bdi>soon<\/bdi>/)
  expect(await story()).toMatch(/<dt>Expected<\/dt><dd><bdi>encoding\.finished<\/bdi> <span class="bad">is missing/)
  expect(await story()).toMatch(/<dt>Begun by<\/dt><dd><a[^>]*><bdi>encoding\.started</)
  expect(await story()).not.toContain('class="state handled"')
  expect(await read(receiver)).toMatch(/aria-label="Overdue: 1">1<.*/)
  expect(await read(receiver, 'events')).toMatch(/Expected *<span class="bad"> *1 <span class="unseen">overdue/)
  await send(receiver, 'a-film')
  await expect.poll(() => read(receiver, 'expected')).toContain('overdue, came later')
  expect(await read(receiver, 'expected')).toMatch(/aria-label="Overdue: 0".*aria-label="Came later: 1"/s)
  expect(await story()).toMatch(/<bdi>encoding\.finished<\/bdi> <a href="[^"]+">came<\/a>/)
  expect(await read(receiver)).not.toContain('Overdue')
  expect(await read(receiver, 'media?id=a-film')).not.toContain('still missing')
})

test('an inbox that forgets handled events does not say that an event is missing', async () => {
  const receiver = expecting(undefined, () => {
    throw new Error('no operator answers')
  })
  await send(receiver, 'a-film', { type: 'encoding.started' })
  await untilDead(receiver, 1)
  const html = await read(receiver, 'expected')
  expect(html).toContain('This inbox forgets handled events')
  expect(html).not.toContain('missing')
})

test('a media item shows what is expected of it as pending rows, and its id once', async () => {
  const receiver = expecting()
  for (const mediaId of ['a-film', 'another']) await send(receiver, mediaId, file)
  const html = await read(receiver, 'media?id=a-film')
  expect(html).toMatch(/expected<\/span><\/span><\/td><td[^>]*><bdi>encoded<\/bdi>, due <time[^>]*>in 119 min/)
  expect(html.match(/state expected/g)).toHaveLength(1)
  expect(html).not.toContain('>Media</th>')
  expect(html.match(/<code>a-film|<bdi>a-film/g)).toHaveLength(1)
})

test('the overview has no number while nothing is expected', async () => {
  const receiver = expecting()
  expect(await read(receiver)).not.toContain('Expected: 0')
  expect(await read(receiver, 'expected')).toContain('No event is expected.')
})

test('the list is short, says how many there are, and shows what it is given as text', async () => {
  const markup = '"><img src=x onerror=alert(1)>'
  const [beganAt, dueAt] = [new Date(Date.now() - 60_000), new Date(Date.now() + 3_600_000)]
  const rules = Array.from({ length: 1_234 }, (_, index) => `${markup}${index}`)
  const html = await pageWith(...rules.map((rule) => ({ rule, mediaId: rule, beganAt, dueAt })))('expected')
  expect(html.match(/<tr>/g)).toHaveLength(51)
  expect(html).toContain('The first 50 of 1,234.')
  expect(html).not.toContain('<img')
  expect(html.length).toBeLessThan(40_000)
})

test('the deadline of an expectation can have passed, before the inbox hands it over', async () => {
  const [beganAt, dueAt] = [new Date(Date.now() - 60_000), new Date(Date.now() - 10_000)]
  const at = pageWith({ rule: 'encoded', mediaId: 'm1', beganAt, dueAt })
  expect(await at('')).toMatch(/next due <time[^>]*>10 s ago/)
})

test('an inbox that keeps no expectations says so', async () => {
  expect(await pageOf({})('expected')).toContain('This inbox keeps no expectations.')
})
