import { expect, test } from 'vitest'
import { describeInBrowser, openPage } from '../../../support/browser.ts'
import { computingTime } from '../../../support/own-time.ts'
import { serveWebhook } from '../../../support/serve.ts'
import { answering, emulate } from '../started-emulator.ts'
import { createWebhook, rows } from './steps.ts'

describeInBrowser('the page', () => {
  test('shows a lost connection, and then the next emulator at the same address', async () => {
    const first = await emulate({ publicKey: 'first' })
    const page = await openPage(first)
    await createWebhook(page, 'http://127.0.0.1:9/')
    await page.locator('#credentials summary').click()
    await page.locator('#new-api-key summary').click()
    await page.locator('#new-api-key').getByLabel('Name').fill('half typ')
    await first.close()
    await page.getByText('not connected').waitFor()

    await emulate({ port: Number(new URL(first.url).port), publicKey: 'second' })
    await page.getByText('● live').waitFor()
    await page.getByText('second', { exact: true }).waitFor()
    await page.getByRole('heading', { name: 'Mine' }).waitFor({ state: 'detached' })
    expect(await page.locator('#new-api-key').getByLabel('Name').inputValue()).toBe('half typ')
  })

  test('keeps the input of a form that could not be sent', async () => {
    const emulator = await emulate()
    const page = await openPage(emulator)
    await page.locator('#media').getByLabel('Title').fill('Holiday.mp4')
    await emulator.close()
    await page.getByRole('button', { name: 'Upload media' }).click()
    await page.getByText('not connected').waitFor()
    expect(await page.locator('#media').getByLabel('Title').inputValue()).toBe('Holiday.mp4')
  })

  test('stays fast while 3,000 sendings arrive', async () => {
    const emulator = await emulate({ timeScale: 0, maxRecords: 5_000 })
    const page = await openPage(emulator)
    await createWebhook(page, await serveWebhook(answering(200)))
    await page.locator('#media').getByLabel('Title').fill('half typ')
    for (let media = 0; media < 600; media++) emulator.addMedia()
    await emulator.settled({ timeoutMs: 150_000 })

    await page.getByRole('region', { name: 'Deliveries' }).getByText('3000 acknowledged').waitFor()
    expect(await rows(page).count()).toBe(50)
    expect(await page.locator('#media').getByLabel('Title').inputValue()).toBe('half typ')
    await page.getByRole('navigation', { name: 'Pages of deliveries' }).getByRole('link', { name: 'Older' }).click()
    await page.getByText('Page 2 of 60').waitFor()

    const computed = computingTime()
    const response = await fetch(`${emulator.url}/?deliveries=60`)
    const html = await response.text()
    expect(computed()).toBeLessThan(1_000)
    expect(html.length).toBeLessThan(200_000)
  })
})
