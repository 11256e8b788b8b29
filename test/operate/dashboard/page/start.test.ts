import { expect, test } from 'vitest'
import { dashboard } from '../../../../src/operate/dashboard/index.ts'
import { mux, receiving } from '../../../events/senders.ts'
import { accessibilityFaults, describeInBrowser } from '../../../support/browser.ts'
import { failing, receiverWith, send } from '../failing-receiver.ts'
import { openInbox } from './operators.ts'

describeInBrowser('the overview of an inbox that received nothing', () => {
  test('has three commands to paste in place of the charts, until something arrives', async () => {
    const receiver = receiverWith()
    receiver.onAny(() => {})
    const page = await openInbox(receiver)
    const { origin } = new URL(page.url())
    const commands = await page.locator('#start pre').allTextContents()
    expect(commands).toEqual([
      `export MEDIA_WEBHOOKS_URL='${origin}/webhooks/media?token=…'`,
      'npx media-webhooks trigger lifecycle --time-scale 0.1',
      'npx media-webhooks doctor',
    ])
    expect(await page.locator('.chart').count()).toBe(0)
    expect(await accessibilityFaults(page)).toEqual([])
    await send(receiver, 'holiday')
    await page.locator('.chart').first().waitFor()
    expect(await page.locator('#start').count()).toBe(0)
  })

  test('shows charts if deliveries were rejected', async () => {
    const receiver = receiverWith()
    const page = await openInbox(receiver)
    await receiver.receive({ method: 'GET', url: '/', headers: new Headers(), body: new Uint8Array() })
    await page.locator('.chart').first().waitFor()
  })
})

test('the steps for another service send a sample of its bodies', async () => {
  const { receiver } = receiving(mux)
  const page = dashboard(receiver, { authorize: () => true })
  const text = await (await page.fetch(new Request('http://localhost/'))).text()
  expect(text).toContain('<pre>npx media-webhooks trigger --body event.json</pre>')
  expect(text).toContain('<pre>npx media-webhooks doctor --body event.json</pre>')
})

test('a page that has not changed is answered 304, and one that has with its body', async () => {
  const { receiver } = await failing()
  const page = dashboard(receiver, { authorize: () => true })
  const ask = (headers = {}, place = '') => page.fetch(new Request(`http://localhost/${place}`, { headers }))
  for (const place of ['', 'events', 'dead-letters']) {
    const first = await ask({}, place)
    const tag = first.headers.get('etag') ?? ''
    const again = await ask({ 'if-none-match': `W/${tag}` }, place)
    expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', tag])
    await send(receiver, 'holiday')
    await expect.poll(async () => (await ask({ 'if-none-match': tag }, place)).status).toBe(200)
  }
})

test('a page that the reader may not see is not answered 304', async () => {
  const { receiver } = await failing()
  let isAdmitted = true
  const page = dashboard(receiver, { authorize: () => isAdmitted })
  const tag = (await page.fetch(new Request('http://localhost/'))).headers.get('etag') ?? ''
  isAdmitted = false
  const again = await page.fetch(new Request('http://localhost/', { headers: { 'if-none-match': tag } }))
  expect(again.status).toBe(403)
})

describeInBrowser('an open page', () => {
  test('is polled without its body while nothing changes, and then shows the next event', async () => {
    const receiver = receiverWith()
    const page = await openInbox(receiver)
    await page.waitForResponse((response) => response.status() === 304)
    await send(receiver, 'holiday')
    await page.locator('.chart').first().waitFor()
  })
})
