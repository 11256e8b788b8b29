import { expect, test } from 'vitest'
import { describeInBrowser } from '../../../support/browser.ts'
import { receiverWith, send } from '../failing-receiver.ts'
import { notice, openInbox } from './operators.ts'

describeInBrowser('a running event', () => {
  test('is found in the list with its time, and stopped on its page', async () => {
    const receiver = receiverWith()
    receiver.onAny((_, { attempt }) => (attempt === 1 ? new Promise(() => {}) : undefined), { name: 'publish' })
    await send(receiver, 'a-film')
    const page = await openInbox(receiver)
    await page.getByRole('link', { name: 'Running: 1' }).click()
    await page.getByText(/Running publish for \d+ s/).waitFor()
    // None of them can be selected.
    expect(await page.getByText('Select events to act on them.').isVisible()).toBe(false)
    await page.locator('tbody a').first().click()
    await page.getByText('Running since').waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await notice(page).getByText('1 event stopped.').waitFor()
    await expect.poll(async () => (await receiver.inbox.stats()).running).toBe(0)
    expect(await page.getByRole('button', { name: 'Stop' }).count()).toBe(0)
  })
})
