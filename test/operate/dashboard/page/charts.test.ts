import { expect, test } from 'vitest'
import type { ActivityMinute, ReadableInbox } from '../../../../src/inbox/reading.ts'
import { createDashboard } from '../../../../src/operate/dashboard/dashboard.ts'
import { describeInBrowser, openPage } from '../../../support/browser.ts'
import { serve } from '../../../support/serve.ts'
import { silent } from '../../../support/silent.ts'

const minuteMs = 60_000

/** Makes the page of an inbox that has accepted these numbers of events in the last minutes, the newest last. */
function pageOf(accepted: readonly number[], durations: readonly number[] = []) {
  const last = Math.floor(Date.now() / minuteMs) * minuteMs
  const minutes = accepted.map((count, index): ActivityMinute => {
    const startedAt = new Date(last - (accepted.length - 1 - index) * minuteMs)
    const none = { duplicates: 0, ignored: 0, rejected: 0, handled: 0, failed: 0 }
    const times = { acknowledgement: durations, handling: durations }
    return { startedAt, accepted: count, ...none, ...times }
  })
  const inbox: ReadableInbox = {
    stats: () => ({ waiting: 0, running: 0, retrying: 0, deadLetters: 0 }),
    activity: () => minutes,
    deadLetters: { list: () => [], get: () => undefined, replay: () => false, discard: () => false },
  }
  return createDashboard({ inbox, name: 'other', logger: silent }, { authorize: () => true })
}

/** Opens the first chart of such a page. */
async function openCharts(accepted: readonly number[]) {
  const page = await openPage({ url: await serve(pageOf(accepted).node) })
  return page.getByRole('figure', { name: 'Accepted' })
}

describeInBrowser('a chart', () => {
  test('names its highest value, and the time from its first bar until now', async () => {
    const chart = await openCharts([3, 100, 25])
    expect(await chart.textContent()).toMatch(/^Accepted128 highest 100\S+ ?\S* agonow$/)
  })

  test('shows the minute and the value of a bar under the pointer', async () => {
    const chart = await openCharts([3, 100, 25])
    const { width = 0, height = 0 } = (await chart.locator('svg').boundingBox()) ?? {}
    await chart.locator('svg').hover({ position: { x: width - (1.5 * width) / 60, y: height / 2 } })
    expect(await chart.locator('output').textContent()).toMatch(/^\d\d:\d\d: 100$/)
  })

  test('stays where it is under the pointer, like its neighbours, and another period forgets the bar', async () => {
    const durations = Array.from({ length: 20 }, (_, index) => 1_000 * index)
    const page = await openPage({ url: await serve(pageOf([3, 100, 25], durations).node) })
    const places = () =>
      page.locator('.chart').evaluateAll((all) =>
        all.map((each) => {
          const { x, y, width, height } = each.getBoundingClientRect()
          return [x, y + Number(Reflect.get(globalThis, 'scrollY')), width, height]
        }),
      )
    const before = await places()
    for (const drawing of await page.locator('.chart svg').all()) {
      await drawing.hover({ position: { x: 5, y: 20 } })
      expect(await places()).toEqual(before)
    }
    expect((await page.locator('.chart output').allTextContents()).every((text) => text !== '')).toBe(true)
    await page.getByRole('link', { name: 'Last day' }).click()
    await page.getByRole('link', { name: 'The numbers of the last day' }).waitFor()
    expect((await page.locator('.chart output').allTextContents()).join('')).toBe('')
  })

  test('shows one bar after another by the arrow keys', async () => {
    const chart = await openCharts([3, 100, 25])
    await chart.focus()
    const texts: (string | undefined)[] = []
    for (const key of ['ArrowLeft', 'ArrowLeft', 'ArrowLeft', 'ArrowRight']) {
      await chart.press(key)
      texts.push((await chart.locator('output').textContent())?.replace(/^\d\d:\d\d: /, ''))
    }
    expect(texts).toEqual(['25', '100', '3', '100'])
  })

  test('leaves small values visible beside a burst: a quarter of the highest value has half of its height', async () => {
    const chart = await openCharts([25, 100])
    const path = (await chart.locator('path.bars').getAttribute('d')) ?? ''
    const tops = Array.from(path.matchAll(/V([\d.]+)h/g), ([, top]) => 40 - Number(top))
    expect(tops).toEqual([19, 38])
  })
})

test('the charts of an hour in which every minute is full leave the page below 40 kB', async () => {
  const busy = pageOf(
    Array.from({ length: 60 }, (_, index) => 10_000 + index),
    [1, 20, 300, 4_000, 50_000],
  )
  const html = await (await busy.fetch(new Request('http://localhost/'))).text()
  expect(html).toContain('highest 10,059')
  expect(html.length).toBeLessThan(40_000)
})
