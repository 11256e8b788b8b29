import { expect, onTestFinished, test } from 'vitest'
import { createReceiver, memoryInbox, unverified } from '../../../../src/index.ts'
import { describeInBrowser } from '../../../support/browser.ts'
import { silent } from '../../../support/silent.ts'
import { send } from '../failing-receiver.ts'
import { notice, openInbox } from './operators.ts'

describeInBrowser('an operator who was never shown the page', () => {
  test('finds why an event of a media item was not handled, and replays it once the handler is fixed', async () => {
    const published: string[] = []
    let publish = (_: string): void => {
      throw new TypeError("Cannot read properties of undefined (reading 'shelf')")
    }
    const inbox = memoryInbox()
    const retry = { attempts: 2, baseMs: 1 }
    const receiver = createReceiver({ verify: unverified(), logger: silent, inbox, retry })
    onTestFinished(async () => void (await receiver.close({ timeoutMs: 1_000 })))
    receiver.on('encoding.finished', ({ mediaId }) => publish(mediaId), { name: 'publish' })
    receiver.on('encoding.finished', ({ mediaId }) => void published.push(`mail about ${mediaId}`), { name: 'mail' })
    for (const media of ['holiday', 'interview', 'concert']) await send(receiver, media)
    await expect.poll(async () => (await receiver.inbox.stats()).deadLetters).toBe(3)

    // All that is known is the media: the field says what can be typed into it.
    const page = await openInbox(receiver)
    await page.getByPlaceholder('Media id').fill('interview')
    await page.getByRole('button', { name: 'Find' }).click()
    await page.getByRole('heading', { name: 'Media' }).waitFor()
    const row = page.locator('tbody tr')
    expect(await row.textContent()).toContain("Cannot read properties of undefined (reading 'shelf')")
    await row.getByRole('link', { name: 'encoding.finished' }).click()
    await page.getByRole('heading', { name: 'Why it was given up' }).waitFor()
    const story = await page.locator('main').textContent()
    expect(story).toMatch(/publish: TypeError.*Attempt 1 failed.*Attempt 2 failed.*Given up/s)
    expect(story).toContain('Completed, and not run again: mail')

    publish = (mediaId) => void published.push(`shelf with ${mediaId}`)
    await page.getByRole('button', { name: 'Replay' }).click()
    await notice(page).getByText('1 dead letter replayed').waitFor()
    await expect.poll(() => published.at(-1)).toBe('shelf with interview')
    expect(published.filter((each) => each.includes('interview'))).toHaveLength(2)

    // The others have the same cause.
    await page.getByRole('link', { name: 'Overview' }).click()
    await page.getByRole('button', { name: 'Replay all 2' }).click()
    await notice(page).getByText('2 dead letters replayed').waitFor()
    await page.getByText('There are no dead letters.').waitFor()
    expect(published).toHaveLength(6)
  })
})
