import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'

/** Creates a webhook with the form. */
export async function createWebhook(page: Page, url: string, name = 'Mine'): Promise<Locator> {
  const form = page.locator('#new-webhook')
  if ((await form.getAttribute('open')) === null) await form.locator('summary').click()
  await form.getByRole('textbox', { name: 'URL' }).fill(url)
  await form.getByLabel('Name').fill(name)
  await form.getByRole('button', { name: 'Create webhook' }).click()
  return whenDone(cardOf(page, name), form.getByLabel('Name'))
}

/** Uploads a media item with the form. */
export async function uploadMedia(page: Page, title = 'Holiday.mp4'): Promise<Locator> {
  const section = page.locator('#media')
  await section.getByLabel('Title').fill(title)
  await section.getByRole('button', { name: 'Upload media' }).click()
  return whenDone(cardOf(page, title), section.getByLabel('Title'))
}

/** Waits for the result and for the empty form. The result can appear first, from an event. */
async function whenDone(card: Locator, input: Locator): Promise<Locator> {
  await card.first().waitFor()
  await expect.poll(() => input.inputValue()).toBe('')
  return card
}

/** The card of a webhook, an API key or a media item. */
export const cardOf = (page: Page, name: string): Locator =>
  page.locator('li.card').filter({ has: page.getByRole('heading', { name, exact: true }) })

/** The rows of the sendings. */
export const rows = (page: Page): Locator => page.locator('tr.sending')
