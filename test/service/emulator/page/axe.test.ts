import { expect, test } from 'vitest'
import { accessibilityFaults, describeInBrowser, openPage } from '../../../support/browser.ts'
import { serveWebhook } from '../../../support/serve.ts'
import { answering, emulate } from '../started-emulator.ts'
import { createWebhook, rows, uploadMedia } from './steps.ts'

describeInBrowser('accessibility', () => {
  test.each(['light', 'dark'] as const)('the page has no fault that axe finds (%s)', async (colorScheme) => {
    const emulator = await emulate()
    const page = await openPage(emulator, { colorScheme })
    expect(await accessibilityFaults(page)).toEqual([])
    await createWebhook(page, await serveWebhook(answering(500, 200)))
    await uploadMedia(page)
    await rows(page).first().getByRole('link').click()
    await page.locator('.delivery').first().waitFor()
    for (const summary of await page.locator('summary').all()) if (await summary.isVisible()) await summary.click()
    expect(await accessibilityFaults(page)).toEqual([])
  })
})
