import { expect, test } from 'vitest'
import { describeInBrowser, openPage } from '../../../support/browser.ts'
import { mess } from '../mess.ts'
import { serveInbox } from './operators.ts'

describeInBrowser('on a phone, among 2,000 events', () => {
  test.each([true, false])('no page scrolls sideways (with a script: %s)', async (javaScriptEnabled) => {
    const { receiver } = await mess()
    const url = await serveInbox(receiver)
    const page = await openPage({ url }, { viewport: { width: 390, height: 740 }, javaScriptEnabled })
    const [dead] = await receiver.inbox.deadLetters.list()
    const key = encodeURIComponent(dead?.key ?? '')
    const media = encodeURIComponent(dead?.event?.mediaId ?? '')
    const places = ['', '?period=day', 'events', 'dead-letters', 'dead-letters?text=media', 'expected', 'numbers']
    const wide = []
    for (const place of [
      ...places,
      'numbers?period=day',
      `event?key=${key}`,
      `media?id=${media}`,
      'bulk-action?id=none',
    ]) {
      await page.goto(place === '' ? url : `${url}/${place}`)
      const width = await page.evaluate('document.documentElement.scrollWidth')
      if (width !== 390) wide.push([place, width])
    }
    expect(wide).toEqual([])
  })

  test('an event of a list takes one line, and the overview is short', async () => {
    const { receiver } = await mess()
    const url = await serveInbox(receiver)
    const page = await openPage({ url }, { viewport: { width: 390, height: 740 } })
    expect(await page.evaluate('document.documentElement.scrollHeight')).toBeLessThan(3_000)
    for (const place of ['events', 'dead-letters?text=media']) {
      await page.goto(`${url}/${place}`)
      const heights = await page.locator('.rows tbody tr').evaluateAll((all) => all.map((each) => each.clientHeight))
      expect(Math.max(...heights)).toBeLessThan(40)
    }
  })
})
