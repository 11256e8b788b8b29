import { expect, test } from 'vitest'
import { createClient } from '../../../../src/service/client/index.ts'
import { faults } from '../../../../src/service/emulator/sending/sending.ts'
import { describeInBrowser, openPage } from '../../../support/browser.ts'
import { serveWebhook } from '../../../support/serve.ts'
import { answering, emulate, receive, subscribe } from '../started-emulator.ts'
import { cardOf, createWebhook, uploadMedia } from './steps.ts'

describeInBrowser('a webhook', () => {
  test('with a wrong URL shows an error beside the form and keeps the input', async () => {
    const emulator = await emulate()
    const page = await openPage(emulator)
    const form = page.locator('#new-webhook')
    await form.getByRole('textbox', { name: 'URL' }).fill('ftp://example.com/webhooks')
    await form.getByLabel('Name').fill('Archive')
    await form.getByLabel('partial.finished').uncheck()
    await form.getByRole('button', { name: 'Create webhook' }).click()
    await form.getByRole('alert').getByText('url must be an http or https URL').waitFor()

    // Changes elsewhere on the page do not affect the form.
    emulator.addMedia({ title: 'Meanwhile.mp4' })
    await cardOf(page, 'Meanwhile.mp4').getByText('finished, uploaded').waitFor()
    expect(await form.getByRole('textbox', { name: 'URL' }).inputValue()).toBe('ftp://example.com/webhooks')
    expect(await form.getByLabel('Name').inputValue()).toBe('Archive')
    expect(await form.getByLabel('partial.finished').isChecked()).toBe(false)
    expect(await form.getByRole('alert').count()).toBe(1)

    await form.getByRole('textbox', { name: 'URL' }).fill('https://example.com/webhooks')
    await form.getByRole('button', { name: 'Create webhook' }).click()
    await cardOf(page, 'Archive').getByText('file.received, encoding.started, encoding.finished').waitFor()
    await form.getByRole('alert').waitFor({ state: 'detached' })
    expect(await form.getByLabel('Name').inputValue()).toBe('')
  })

  test('can be edited, and immediately shows changes made by the API', async () => {
    const emulator = await emulate()
    const page = await openPage(emulator)
    const card = await createWebhook(page, 'http://127.0.0.1:9/')
    await card.locator('summary', { hasText: 'Edit' }).click()
    await card.getByRole('textbox', { name: 'Name' }).fill('Yours')
    await card.getByLabel('encoding.failed').uncheck()
    await card.getByRole('button', { name: 'Save', exact: true }).click()
    await cardOf(page, 'Yours')
      .getByText('file.received, encoding.started, partial.finished, encoding.finished')
      .waitFor()

    const client = createClient(emulator.credentials, { baseUrl: emulator.url })
    const [webhook] = (await client.webhook.list()).data.webhooks
    await client.webhook.update(webhook?.id ?? '', { name: 'Ours', encodingFailed: true })
    await cardOf(page, 'Ours').getByText('All events').waitFor()
  })

  test('can be checked, and shows whether the check succeeded', async () => {
    const emulator = await emulate()
    const page = await openPage(emulator)
    const card = await createWebhook(page, await serveWebhook(answering(503, 200)))
    await card.getByRole('button', { name: 'Check' }).click()
    await card.getByRole('alert').getByText('the test delivery failed: answered 503').waitFor()
    await card.getByRole('button', { name: 'Check' }).click()
    await page.locator('#notice').getByText('the test delivery was acknowledged').waitFor()
    expect(await card.getByRole('alert').count()).toBe(0)
  })

  test('is deleted only after a confirmation', async () => {
    const emulator = await emulate()
    const page = await openPage(emulator)
    const card = await createWebhook(page, 'http://127.0.0.1:9/')
    expect(await card.getByRole('button', { name: 'Delete Mine' }).isVisible()).toBe(false)
    await card.locator('summary', { hasText: 'Delete' }).click()
    await card.getByRole('button', { name: 'Delete Mine' }).click()
    await card.waitFor({ state: 'detached' })
    await page.locator('#notice').getByText('The webhook was deleted').waitFor()
  })

  test('can receive another format with signatures, and rejects an invalid behaviour', async () => {
    const { url, events } = await receive()
    const emulator = await emulate()
    const page = await openPage(emulator)
    const card = await createWebhook(page, url)
    await card.locator('summary', { hasText: 'Behaviour' }).click()
    await card.getByRole('combobox', { name: 'Format' }).selectOption('envelope')
    expect(await card.getByRole('textbox', { name: 'Secret' }).isVisible()).toBe(false)
    await card.getByRole('combobox', { name: 'Signing' }).selectOption('hmac-signature')
    expect(await card.getByRole('textbox', { name: 'Username' }).isVisible()).toBe(false)
    await card.getByRole('textbox', { name: 'Secret' }).fill('a shared secret')
    await card.getByRole('button', { name: 'Save behaviour' }).click()
    await card.getByRole('alert').getByText('header').waitFor()
    await card.getByRole('textbox', { name: 'Header', exact: true }).fill('x-signature')
    await card.getByRole('button', { name: 'Save behaviour' }).click()
    await card.getByText('Sends in the envelope format, signed with hmac-signature').waitFor()

    await uploadMedia(page)
    await emulator.settled()
    expect(events.map(({ format }) => format)).toContain('envelope')
    expect(emulator.sendings()[0]?.deliveries[0]?.request.headers).toHaveProperty('X-Signature')
  })

  test('says what the chosen fault does, also without a script', async () => {
    const emulator = await emulate()
    await subscribe(emulator, 'http://127.0.0.1:9/')
    const page = await openPage(emulator, { javaScriptEnabled: false })
    const form = page.locator('#webhooks .card').first()
    await form.locator('summary', { hasText: 'Behaviour' }).click()
    const sentences = () => form.locator('[data-fault]:visible').allTextContents()
    expect(await sentences()).toEqual([])
    const choice = form.getByRole('combobox', { name: 'Fault' })
    for (const fault of faults) {
      await choice.selectOption(fault)
      expect(await sentences()).toEqual([await form.locator(`[data-fault=${fault}]`).textContent()])
    }
  })
})

describeInBrowser('an API key', () => {
  test('shows its secret once, and works', async () => {
    const emulator = await emulate()
    const page = await openPage(emulator)
    await page.locator('#new-api-key summary').click()
    await page.locator('#new-api-key').getByLabel('Name').fill('Deploy')
    await page.getByRole('button', { name: 'Create API key' }).click()
    const [publicKey = '', secretKey = ''] = await page.locator('#notice code').allTextContents()
    const client = createClient({ publicKey, secretKey }, { baseUrl: emulator.url })
    expect((await client.apiKey.list()).data.total).toBe(1)

    await page.reload()
    await cardOf(page, 'Deploy').waitFor()
    expect(await page.content()).not.toContain(secretKey)
  })

  test('can be renamed and deleted, and is rejected when its lifetime is invalid', async () => {
    const emulator = await emulate()
    const page = await openPage(emulator)
    const form = page.locator('#new-api-key')
    await form.locator('summary').click()
    await form.getByLabel('Name').fill('Deploy')
    await form.getByLabel('Lifetime').fill('forever')
    await form.getByRole('button').click()
    await form.getByRole('alert').getByText('ttl must be a whole number').waitFor()
    await form.getByLabel('Lifetime').fill('60')
    await form.getByRole('button').click()

    await cardOf(page, 'Deploy').locator('summary', { hasText: 'Rename' }).click()
    await cardOf(page, 'Deploy').getByLabel('New name').fill('Release')
    await cardOf(page, 'Deploy').getByRole('button', { name: 'Rename' }).click()
    await cardOf(page, 'Release').locator('summary', { hasText: 'Delete' }).click()
    await cardOf(page, 'Release').getByRole('button', { name: 'Delete Release' }).click()
    await cardOf(page, 'Release').waitFor({ state: 'detached' })
  })
})

describeInBrowser('the credentials', () => {
  test('can be copied', async () => {
    const emulator = await emulate()
    const page = await openPage(emulator, { permissions: ['clipboard-read', 'clipboard-write'] })
    await page.getByText('Credentials').click()
    for (const [name, value] of Object.entries({
      'base URL': emulator.url,
      'public key': emulator.credentials.publicKey,
      'secret key': emulator.credentials.secretKey,
      'access token': emulator.credentials.accessToken,
    })) {
      await page.getByRole('button', { name: `Copy ${name}` }).click()
      await expect.poll(() => page.evaluate('navigator.clipboard.readText()')).toBe(value)
    }
  })
})
