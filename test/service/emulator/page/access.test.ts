import { expect, test } from 'vitest'
import { describeInBrowser, openPage, tabTo } from '../../../support/browser.ts'
import { serveWebhook } from '../../../support/serve.ts'
import { answering, emulate } from '../started-emulator.ts'
import { cardOf, createWebhook, rows, uploadMedia } from './steps.ts'

describeInBrowser('the keyboard alone', () => {
  test('is enough to create a webhook, upload a media item, and open and repeat a sending', async () => {
    const emulator = await emulate()
    const page = await openPage(emulator)
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    expect(await page.locator(':focus').textContent()).toBe('Deliveries')

    await page.reload()
    await page.getByText('● live').waitFor()
    await tabTo(page, page.locator('#new-webhook').getByRole('textbox', { name: 'URL' }))
    await page.keyboard.type(await serveWebhook(answering(200)))
    await page.keyboard.press('Tab')
    await page.keyboard.type('Mine')
    await page.keyboard.press('Enter')
    await cardOf(page, 'Mine').waitFor()

    await tabTo(page, page.locator('#media').getByRole('textbox', { name: 'Title' }))
    await page.keyboard.type('Holiday.mp4')
    await page.keyboard.press('Enter')
    await rows(page).nth(4).getByText('acknowledged').waitFor()

    await tabTo(page, rows(page).first().getByRole('link'))
    await page.keyboard.press('Enter')
    await tabTo(page, page.getByRole('button', { name: 'Repeat' }))
    await page.keyboard.press('Enter')
    await rows(page).nth(5).waitFor()
  })

  test('keeps the focus and open details while deliveries arrive', async () => {
    const emulator = await emulate()
    const page = await openPage(emulator)
    await createWebhook(page, await serveWebhook(answering(200)))
    await uploadMedia(page)
    await rows(page).nth(4).getByText('acknowledged').waitFor()
    await page.locator('#credentials summary').click()
    await rows(page).first().getByRole('link').focus()
    const line = await rows(page).first().getAttribute('id')

    emulator.addMedia({ title: 'Another.mp4' })
    await rows(page).nth(9).getByText('acknowledged').waitFor()
    expect(await page.locator(`#${line} :focus`).count()).toBe(1)
    expect(await page.getByText(emulator.credentials.secretKey).isVisible()).toBe(true)
  })
})

describeInBrowser('on a phone', () => {
  test('the deliveries come before the media', async () => {
    const page = await openPage(await emulate(), { viewport: { width: 390, height: 740 } })
    const top = async (id: string) => (await page.locator(id).boundingBox())?.y ?? Number.NaN
    expect(await top('#deliveries')).toBeLessThan(await top('#media'))
  })

  test.each(['light', 'dark'] as const)('the page fits into 360 pixels (%s)', async (colorScheme) => {
    const emulator = await emulate()
    const page = await openPage(emulator, { viewport: { width: 360, height: 740 }, colorScheme })
    const width = () => page.evaluate('document.scrollingElement.scrollWidth')
    expect(await width()).toBe(360)

    const long = 'x'.repeat(100)
    const card = await createWebhook(page, `${await serveWebhook(answering(500))}?${long}`, long)
    await uploadMedia(page, `${long}.mp4`)
    await rows(page).first().getByRole('link').click()
    await page.locator('.delivery').first().waitFor()
    await card.getByRole('button', { name: 'Check' }).click()
    await card.getByRole('alert').waitFor()
    for (const summary of await page.locator('summary').all()) if (await summary.isVisible()) await summary.click()
    expect(await width()).toBe(360)
  })
})

describeInBrowser('without a script', () => {
  test('the page works with documents and forms', async () => {
    const emulator = await emulate()
    const page = await openPage(emulator, { javaScriptEnabled: false })
    const form = page.locator('#new-webhook')
    await form.getByRole('textbox', { name: 'URL' }).fill('nowhere')
    await form.getByLabel('Name').fill('Mine')
    await form.getByRole('button').click()
    await form.getByRole('alert').waitFor()
    expect(await form.getByLabel('Name').inputValue()).toBe('Mine')
    await form.getByRole('textbox', { name: 'URL' }).fill(await serveWebhook(answering(200)))
    await form.getByRole('button').click()
    await page.getByText('The webhook was created').waitFor()

    await uploadMedia(page)
    await emulator.settled()
    await page.goto(emulator.url)
    await page.getByRole('combobox', { name: 'State' }).selectOption('acknowledged')
    await page.getByRole('button', { name: 'Filter' }).click()
    await rows(page).first().getByRole('link').click()
    await page.getByText('acknowledged with 200').waitFor()
    await page.getByRole('button', { name: 'Repeat' }).click()
    await page.getByText('The event is being sent again').waitFor()
    expect(new URL(page.url()).searchParams.get('state')).toBe('acknowledged')

    await cardOf(page, 'Mine').locator('summary', { hasText: 'Delete' }).click()
    await cardOf(page, 'Mine').getByRole('button', { name: 'Delete Mine' }).click()
    await page.getByText('The webhook was deleted').waitFor()
    await expect.poll(() => page.getByRole('button', { name: /Copy/ }).count()).toBe(0)
  })
})
