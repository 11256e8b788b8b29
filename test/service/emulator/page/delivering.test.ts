import { expect, test } from 'vitest'
import { createClient } from '../../../../src/service/client/index.ts'
import { describeInBrowser, openPage } from '../../../support/browser.ts'
import { freePort } from '../../../support/free-port.ts'
import { serveWebhook } from '../../../support/serve.ts'
import { answering, emulate, receive, subscribe } from '../started-emulator.ts'
import { cardOf, createWebhook, rows, uploadMedia } from './steps.ts'

const types = ['file.received', 'encoding.started', 'partial.finished', 'partial.finished', 'encoding.finished']

describeInBrowser('an uploaded media', () => {
  test('reaches a real receiver, and shows its deliveries and its timeline', async () => {
    const { url, events } = await receive()
    const emulator = await emulate()
    const page = await openPage(emulator)
    await page.getByRole('heading', { name: 'Start here' }).waitFor()

    await createWebhook(page, url)
    const media = await uploadMedia(page, 'Holiday.mp4')
    await media.getByText('finished, uploaded').waitFor()
    await rows(page).nth(4).getByText('acknowledged').waitFor()
    await emulator.settled()

    expect(events.map(({ type }) => type)).toEqual(types)
    expect(await rows(page).locator('.event').allTextContents()).toEqual(types.toReversed())
    expect(await media.locator('.timeline > .emitted').count()).toBe(5)
    await expect.poll(() => media.getByTitle('acknowledged').count()).toBe(5)
    await page.getByRole('heading', { name: 'Start here' }).waitFor({ state: 'detached' })
  })

  test('can fail, at the last of its qualities', async () => {
    const { url, events } = await receive()
    const emulator = await emulate()
    const page = await openPage(emulator)
    await createWebhook(page, url)
    await page.getByLabel('Qualities').fill('240p, 1080p')
    await page.getByLabel('The encoding fails').check()
    await uploadMedia(page)
    await cardOf(page, 'Holiday.mp4').getByText('failed, uploaded').waitFor()
    await rows(page).nth(3).waitFor()

    expect(events.map(({ type }) => type)).toContain('encoding.failed')
    expect(events.map(({ qualities }) => qualities.join())).toContain('240p')
  })
})

describeInBrowser('a sending', () => {
  test('shows each delivery, the reason for each retry, and the result', async () => {
    const emulator = await emulate({ timeScale: 0.02 })
    const page = await openPage(emulator)
    const statuses = [503, 500]
    const receiver = await serveWebhook((request, response) => {
      request.resume()
      response.writeHead(statuses.shift() ?? 200, { 'x-request-id': 'r-17' }).end('says the receiver')
    })
    await createWebhook(page, receiver)
    await page.getByLabel('Qualities').fill('720p')
    await uploadMedia(page)
    const row = rows(page).filter({ hasText: 'file.received' })
    await row.getByRole('link').click()
    await row.getByText('acknowledged').waitFor()

    const detail = page.locator('.detail')
    await detail.getByText('acknowledged with').waitFor()
    const text = await detail.textContent()
    expect(text).toMatch(/Delivery 1 .*answered 503 .*sent again 60 ms later.*POST http:.*User-Agent: go-resty/s)
    expect(text).toContain('"type":"file.received"')
    expect(text).toContain('says the receiver')
    expect(text).toContain('x-request-id: r-17')
    expect(await detail.locator('.delivery').filter({ hasText: 'User-Agent' }).count()).toBe(1)
    const later = detail.locator('.delivery').filter({ hasText: 'The request is the same as in delivery 1' })
    expect(await later.count()).toBe((await detail.locator('.delivery').count()) - 1)
    expect(await later.count()).toBeGreaterThan(0)
    await detail.locator('summary', { hasText: 'Exact bytes' }).first().click()
    const { body } =
      emulator.sendings().find(({ payload }) => payload.type === 'file.received')?.deliveries[0]?.request ?? {}
    expect(await detail.locator('details[open] pre').textContent()).toBe(body)
    expect(await row.locator('[data-name=attempts]').textContent()).toBe(await count(detail.locator('.delivery')))
    await row.getByRole('link').click()
    await detail.waitFor({ state: 'detached' })
  })

  test('to a receiver that is down is given up, and can be repeated later', async () => {
    const emulator = await emulate()
    const page = await openPage(emulator)
    const card = await createWebhook(page, 'http://127.0.0.1:9/nobody')
    await uploadMedia(page)
    await rows(page).filter({ hasText: 'failed' }).nth(4).waitFor()
    await rows(page).filter({ hasText: 'encoding.finished' }).getByRole('link').click()
    await page.getByText('The sender gave up').waitFor()

    const { url, events } = await receive()
    await card.locator('summary', { hasText: 'Edit' }).click()
    await card.getByRole('textbox', { name: 'URL' }).fill(url)
    await card.getByRole('button', { name: 'Save', exact: true }).click()
    await card.getByText(url).waitFor()
    await page.getByRole('button', { name: 'Repeat' }).click()
    await page.locator('.open').getByText('acknowledged').waitFor()

    await expect.poll(() => events.map(({ type }) => type)).toEqual(['encoding.finished'])
    expect(await rows(page).count()).toBe(6)
  })

  test('can be repeated with a fault', async () => {
    const { url, events } = await receive()
    const emulator = await emulate()
    const page = await openPage(emulator)
    await createWebhook(page, url)
    await uploadMedia(page)
    await rows(page).filter({ hasText: 'encoding.finished' }).getByRole('link').click()
    await page.locator('.detail').getByRole('combobox', { name: 'Fault' }).selectOption('corrupt-body')
    await page.getByRole('button', { name: 'Repeat' }).click()

    const [repeated] = await page.locator('.open + .detail').all()
    await repeated?.getByText('corrupt-body').first().waitFor()
    await page.locator('.open').getByText('acknowledged').waitFor()
    await repeated?.getByText('answered 400').waitFor()
    expect(events).toHaveLength(5)
  })
})

describeInBrowser('the deliveries', () => {
  test('of the longest title take two lines each, with the whole title at hand', async () => {
    const emulator = await emulate()
    await subscribe(emulator, await serveWebhook(answering(200)))
    const title = 'x'.repeat(255)
    emulator.addMedia({ title })
    await emulator.settled()
    const page = await openPage(emulator)
    const box = await rows(page).first().boundingBox()
    expect(box?.height).toBeLessThan(70)
    expect(await rows(page).first().getByTitle(title).count()).toBe(1)
  })

  test('of a long title leave the name of the webhook on one line', async () => {
    const emulator = await emulate()
    await createClient(emulator.credentials, { baseUrl: emulator.url }).webhook.create({
      url: await serveWebhook(answering(200)),
      name: 'staging receiver',
      fileReceived: true,
    })
    emulator.addMedia({ title: 'A title with many words '.repeat(10) })
    await emulator.settled()
    const page = await openPage(emulator)
    const { height = 0 } = (await rows(page).first().getByText('staging receiver').boundingBox()) ?? {}
    expect(height).toBeLessThan(25)
  })

  test('to a port where nothing listens ask whether the server is running', async () => {
    const emulator = await emulate()
    await subscribe(emulator, `http://127.0.0.1:${await freePort()}/hook`)
    emulator.addMedia()
    const page = await openPage(emulator)
    await rows(page).first().getByRole('link').click()
    await page
      .getByText(/ECONNREFUSED \(is the server running, and are the host and the port right\?\)/)
      .first()
      .waitFor()
  })

  test('can be filtered by state and by webhook, and the filter stays', async () => {
    const emulator = await emulate()
    const page = await openPage(emulator)
    await createWebhook(page, await serveWebhook(answering(200)), 'Good')
    await createWebhook(page, await serveWebhook(answering(500)), 'Bad')
    await uploadMedia(page)
    await rows(page).filter({ hasText: 'failed' }).nth(4).waitFor()

    await page.getByRole('combobox', { name: 'State' }).selectOption('failed')
    await expect.poll(() => rows(page).count()).toBe(5)
    await page.getByRole('combobox', { name: 'Webhook' }).selectOption('Good')
    await page.getByText('No delivery matches the filter').waitFor()
    await page.goBack()
    await expect.poll(() => rows(page).count()).toBe(5)
    await uploadMedia(page, 'Another.mp4')
    await expect.poll(() => rows(page).count()).toBe(10)
    expect(await page.getByRole('combobox', { name: 'State' }).inputValue()).toBe('failed')
    expect(await rows(page).filter({ hasText: 'Good' }).count()).toBe(0)
  })
})

const count = async (locator: { count(): Promise<number> }) => String(await locator.count())
