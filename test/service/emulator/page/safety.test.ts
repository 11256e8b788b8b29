import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { createClient } from '../../../../src/service/client/index.ts'
import type { Emulator } from '../../../../src/service/emulator/index.ts'
import { describeInBrowser, openOther, openPage } from '../../../support/browser.ts'
import { serveWebhook } from '../../../support/serve.ts'
import { answering, emulate } from '../started-emulator.ts'
import { cardOf, createWebhook, rows } from './steps.ts'

const markup = '"><script>alert(1)</script><img src=x onerror=alert(2)>'

describeInBrowser('markup in user input', () => {
  // openPage fails the test when a dialog opens or an image is requested.
  test('is shown as text everywhere', async () => {
    const emulator = await emulate()
    const page = await openPage(emulator)
    const url = `${await serveWebhook(answering(200))}?${markup}`
    const card = await createWebhook(page, url, markup)
    emulator.addMedia({ title: markup })
    await emulator.settled()
    await rows(page).first().getByText(markup).first().waitFor()
    await rows(page).first().getByRole('link').click()
    await page.locator('.detail').getByText(url).first().waitFor()
    await cardOf(page, markup).first().waitFor()

    await card.first().locator('summary', { hasText: 'Edit' }).click()
    expect(await card.first().getByRole('textbox', { name: 'URL' }).inputValue()).toBe(url)
    await page.reload()
    await rows(page).first().getByText(markup).first().waitFor()
    expect(await page.locator('img, body script').count()).toBe(0)
  })

  test('in the address is shown as text or ignored', async () => {
    const emulator = await emulate()
    const page = await openPage(emulator)
    await createWebhook(page, await serveWebhook(answering(200)))
    emulator.addMedia()
    await emulator.settled()
    const query = ['state', 'webhook', 'sending', 'deliveries', 'notice'].map(
      (name) => `${name}=${encodeURIComponent(markup)}`,
    )
    await page.goto(`${emulator.url}/?${query.join('&')}`)
    await page.getByText('No delivery matches the filter').waitFor()
    expect(await page.locator('img, body script').count()).toBe(0)
  })
})

/** Opens a page of another origin that frames the emulator's page and has a form for one of its actions. */
async function openForeign() {
  const emulator = await emulate()
  const html = `<!doctype html>
    <iframe src="${emulator.url}"></iframe>
    <form method="post" action="${emulator.url}/page/webhooks">
      <input name="url" value="http://127.0.0.1:9/"><input name="encoding_finished" value="on"><button>Forge</button>
    </form>`
  const url = await serveWebhook((_, response) => response.setHeader('content-type', 'text/html').end(html))
  return { emulator, foreign: await openOther(url), webhooks: () => webhooksOf(emulator) }
}

async function webhooksOf({ credentials, url }: Emulator): Promise<number> {
  return (await createClient(credentials, { baseUrl: url }).webhook.list()).data.webhooks.length
}

/** Returns what a script in the page can read from a URL. */
const read = (page: Page, url: string, init: RequestInit = {}): Promise<string> =>
  page.evaluate(
    ([url, init]) =>
      fetch(url, init).then(
        (response) => response.text(),
        ({ name }) => `threw ${name}`,
      ),
    [url, init] as const,
  )

describeInBrowser("another origin's page", () => {
  test.each(['/', '/page/sections/webhooks', '/emulator/sendings', '/api/webhooks'])('cannot read %s', async (path) => {
    const { emulator, foreign } = await openForeign()
    expect(await read(foreign, `${emulator.url}${path}`)).toBe('threw TypeError')
  })

  test('cannot show the page in a frame', async () => {
    const { foreign } = await openForeign()
    expect(foreign.frames()).toHaveLength(2)
    expect(await foreign.frames()[1]?.getByRole('heading').count()).toBe(0)
  })

  test('cannot change anything by a request', async () => {
    const { emulator, foreign, webhooks } = await openForeign()
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const init = { method: 'POST', headers, body: 'url=http%3A%2F%2F127.0.0.1%3A9%2F&encoding_finished=on' }
    await read(foreign, `${emulator.url}/page/webhooks`, init)
    await read(foreign, `${emulator.url}/page/webhooks`, { ...init, mode: 'no-cors' })
    expect(await webhooks()).toBe(0)
  })

  test('cannot change anything by a form', async () => {
    const { foreign, webhooks } = await openForeign()
    await foreign.getByRole('button', { name: 'Forge' }).click()
    await foreign.getByText('another').waitFor()
    expect(await webhooks()).toBe(0)
  })
})
