import { expect, test } from 'vitest'
import { describeInBrowser } from '../../../support/browser.ts'
import { failing } from '../failing-receiver.ts'
import { openInbox } from './operators.ts'

const utc = /^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) UTC$/
const hoursBetween = (local: string, inUtc: string) => (Date.parse(`${inUtc}Z`) - Date.parse(`${local}Z`)) / 3_600_000

describeInBrowser('times on the dashboard', () => {
  test('are those of the reader, with UTC in the tooltip, also after an update', async () => {
    const { receiver, keys } = await failing(1)
    const page = await openInbox(receiver, { timezoneId: 'Asia/Kolkata' })
    const base = page.url()
    await page.goto(`${base}/event?key=${encodeURIComponent(keys[0] ?? '')}`)
    const moment = page.locator('.facts time').first()
    for (const _ of ['loaded', 'updated']) {
      const [, tooltip = ''] = utc.exec((await moment.getAttribute('title')) ?? '') ?? []
      expect(hoursBetween(`${await moment.textContent()}`, tooltip)).toBe(-5.5)
      await page.waitForResponse((response) => response.url() === page.url())
    }
    await page.goto(`${base}/events`)
    const age = page.locator('td time').first()
    expect(await age.textContent()).toMatch(/ago$/)
    expect(await age.getAttribute('title')).toMatch(/^\d{4}-\d\d-\d\d [\d:.]+ \(\d{4}-\d\d-\d\d [\d:.]+ UTC\)$/)
    await expect.poll(() => page.locator('footer').textContent()).toContain('Times are in Asia/')
  })

  test('filter in the time of the reader, and stand in the address in UTC', async () => {
    const { receiver } = await failing(2)
    const page = await openInbox(receiver, { timezoneId: 'Asia/Kolkata' })
    await page.goto(`${page.url()}/dead-letters?text=media`)
    const since = page.getByLabel('Since', { exact: true })
    await since.fill('2026-03-01T12:30')
    await page.waitForURL(/since=2026-03-01T07%3A00/)
    await expect.poll(() => since.inputValue()).toBe('2026-03-01T12:30')
    await page.reload()
    await expect.poll(() => since.inputValue()).toBe('2026-03-01T12:30')
    expect(page.url()).toContain('since=2026-03-01T07%3A00')
  })

  test('are in UTC without JavaScript', async () => {
    const { receiver, keys } = await failing(1)
    const page = await openInbox(receiver, { timezoneId: 'Asia/Kolkata', javaScriptEnabled: false })
    await page.goto(`${page.url()}/event?key=${encodeURIComponent(keys[0] ?? '')}`)
    expect(await page.locator('.facts time').first().textContent()).toMatch(utc)
    expect(await page.locator('footer').textContent()).toBe('Times are in UTC.')
  })
})
