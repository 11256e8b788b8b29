import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { describeInBrowser } from '../../support/browser.ts'
import { send } from '../failing-receiver.ts'
import { failed, mess } from '../mess.ts'
import { firstCause, openInbox } from './operators.ts'

/** The hands of a person: they reach what is visible, and count what they did. */
function handsOn(page: Page) {
  const done: string[] = []
  return {
    done,
    async click(role: 'link' | 'button', name: string) {
      await page.getByRole(role, { name, exact: true }).click()
      done.push(`click ${name}`)
    },
    async type(field: string, text: string) {
      await page.getByRole('searchbox', { name: field }).fill(text)
      done.push(`type ${text}`)
    },
  }
}

const main = async (page: Page) => (await page.locator('main').textContent()) ?? ''

describeInBrowser('among 2,000 events, an operator', () => {
  test('reads the outcome of a media item after typing its id: one field and one click', async () => {
    const { receiver } = await mess()
    await send(receiver, 'wedding', { type: 'file.received' })
    await send(receiver, 'wedding', { title: 'Wedding.mp4' })
    await expect.poll(() => receiver.inbox.stats()).toMatchObject({ deadLetters: 351 })
    const page = await openInbox(receiver)
    const { click, type, done } = handsOn(page)
    await type('Media id or event key', 'wedding')
    await click('button', 'Find')
    await page.getByRole('heading', { name: 'Media' }).waitFor()
    const rows = await page.locator('tbody tr').allTextContents()
    expect(rows).toEqual([
      expect.stringMatching(/handled.*file\.received/),
      expect.stringMatching(/dead.*encoding\.finished.*no shelf for "wedding"/),
    ])
    expect(done).toHaveLength(2)
  })

  test('reads what fails most, since when and whether it gets worse on the first page: no click', async () => {
    const { receiver } = await mess()
    const page = await openInbox(receiver)
    const worst = (await firstCause(page).textContent()) ?? ''
    expect(worst).toMatch(/^260.*catalogue: TypeError: no shelf for “#”/)
    expect(worst).toMatch(/first 20 h ago, last \d+ min ago/)
    expect(worst).toMatch(/200 in the last hour 40 in the hour before/)
    const counts = await page.locator('.causes .count').allTextContents()
    expect(counts).toEqual(Object.values(failed).map(String))
    const { y = 0, height = 0 } = (await firstCause(page).boundingBox()) ?? {}
    expect(y + height).toBeLessThan(page.viewportSize()?.height ?? 0)
  })

  test('replays what the fix repaired and sees it succeed: two clicks', async () => {
    const { receiver, fixed } = await mess()
    const page = await openInbox(receiver)
    const { click, done } = handsOn(page)
    fixed.add('catalogue')
    await click('button', 'Replay all 260')
    await page.getByText('260 dead letters replayed').waitFor()
    await click('link', 'Overview')
    await page.getByRole('link', { name: 'Dead letters: 90' }).waitFor()
    for (const state of ['Waiting', 'Running', 'Retrying'])
      await page.getByRole('link', { name: `${state}: 0` }).waitFor()
    const shown = await main(page)
    expect(shown).not.toContain('no shelf')
    expect(shown).toMatch(/Handled260 /)
    expect(done).toHaveLength(2)
  })

  test('reads how a replay went: how many were handled, and how many failed again', async () => {
    const { receiver, fixed } = await mess()
    const page = await openInbox(receiver)
    const { click } = handsOn(page)
    const outcome = page.getByRole('list', { name: 'The replayed events now' })
    await click('button', 'Replay all 5')
    await click('link', 'See how it went')
    await outcome.getByText('5 events failed again, dead letters now.').waitFor()
    expect(await outcome.getByRole('listitem').count()).toBe(1)
    await click('link', 'Overview')
    fixed.add('search')
    await click('button', 'Replay all 5')
    await click('link', 'See how it went')
    await outcome.getByText('5 events handled since.').waitFor()
    expect(await outcome.getByRole('listitem').count()).toBe(1)
  })

  test('reads how a replay of more than 200 went, on its page and among the last actions of the overview', async () => {
    const { receiver, fixed } = await mess()
    const page = await openInbox(receiver)
    const { click, done } = handsOn(page)
    fixed.add('catalogue')
    await click('button', 'Replay all 260')
    await page.getByText('260 dead letters replayed').waitFor()
    await click('link', 'Overview')
    await page.getByText('260 events handled since.').waitFor()
    expect(done).toHaveLength(2)
    await click('link', 'Replaying 260 dead letters: done')
    await page.getByRole('list', { name: 'The replayed events now' }).getByText('260 events handled since.').waitFor()
  })
})
