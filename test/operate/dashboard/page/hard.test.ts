import { expect, onTestFinished, test, vi } from 'vitest'
import { WebhookError } from '../../../../src/index.ts'
import { createDashboard } from '../../../../src/operate/dashboard/dashboard.ts'
import { dashboard, localOnly } from '../../../../src/operate/dashboard/index.ts'
import { describeInBrowser, openPage } from '../../../support/browser.ts'
import { computingTime } from '../../../support/own-time.ts'
import { serve } from '../../../support/serve.ts'
import { silent } from '../../../support/silent.ts'
import { failing, receiverWith, send, untilDead } from '../failing-receiver.ts'
import { firstCause, notice, openInbox, serveInbox } from './operators.ts'

const markup = '"><script>alert(1)</script><img src=x onerror=alert(2)>'

describeInBrowser('hostile texts', () => {
  // openPage fails the test when a dialog opens or an image is requested.
  test('are shown as text on every page', async () => {
    const receiver = receiverWith()
    receiver.onAny(() => Promise.reject(new Error(markup)), { name: markup })
    await send(receiver, `m${markup}`, { title: markup, type: `t${markup}`, [markup]: { [markup]: markup } })
    await untilDead(receiver, 1)
    const url = await serveInbox(receiver)
    const page = await openPage({ url })
    const [dead] = await receiver.inbox.deadLetters.list()
    const key = encodeURIComponent(dead?.key ?? '')
    const media = encodeURIComponent(`m${markup}`)
    const places = ['', '/events', '/dead-letters', `/event?key=${key}`, `/media?id=${media}`]
    const queries = [
      `/events?type=${media}`,
      `/event?key=${media}`,
      `/bulk-action?id=${media}&back=${media}`,
      `/?period=${media}`,
    ]
    for (const place of [...places, ...queries]) {
      await page.goto(url + place)
      await page.getByText('● live').waitFor()
      expect(await page.locator('img, body script').count()).toBe(0)
    }
    await page.goto(`${url}/event?key=${key}`)
    expect(await page.locator('main').textContent()).toContain(markup)
  })

  test('cannot turn the direction of the page around', async () => {
    const receiver = receiverWith()
    receiver.onAny(() => Promise.reject(new Error('\u202eno')), { name: 'publish' })
    await send(receiver, 'a-film', { title: '\u202e4pm.yadiloH' })
    await untilDead(receiver, 1)
    const page = await openInbox(receiver)
    await page.getByRole('link', { name: 'Show' }).click()
    const direction = (selector: string) =>
      page.evaluate(`getComputedStyle(document.querySelector(${JSON.stringify(selector)})).unicodeBidi`)
    await page.locator('tbody bdi').first().waitFor()
    expect(await direction('tbody .title bdi')).toBe('isolate')
    await page.locator('tbody a').first().click()
    await page.locator('#payload pre').waitFor()
    expect(await page.locator('#payload pre').textContent()).toContain('\\u202e4pm.yadiloH')
  })
})

describeInBrowser('10,000 dead letters', () => {
  test('are grouped fast, and discarded by a bulk action that can be stopped', async () => {
    const { receiver } = await failing(1)
    for (let media = 2; media <= 10_000; media++) await send(receiver, `media-${media}`)
    await untilDead(receiver, 10_000)
    const page = dashboard(receiver, { authorize: () => true })
    const computed = computingTime()
    const html = await (await page.fetch(new Request('http://localhost/'))).text()
    expect(computed()).toBeLessThan(2_000)
    const again = computingTime()
    await (await page.fetch(new Request('http://localhost/'))).text()
    expect(again()).toBeLessThan(200)
    expect(html.length).toBeLessThan(50_000)

    const shown = await openInbox(receiver)
    expect(await shown.locator('.causes > li').count()).toBe(1)
    expect(await firstCause(shown).locator('.count').textContent()).toBe('10,000')
    await shown.getByRole('button', { name: 'Replay all 10,000' }).click()
    await shown
      .locator('#main')
      .getByText(/of 10,000, \d+ replayed/)
      .waitFor()
    await shown.getByRole('button', { name: 'Stop' }).click()
    await shown.getByText('Stopped. The rest is unchanged.').waitFor()
    await shown.getByRole('link', { name: 'Go to the dead letters' }).click()
    await firstCause(shown).getByRole('link').click()
    await shown.getByText('Page 1 of').waitFor()
    await shown.getByRole('link', { name: 'Older' }).click()
    await shown.getByText('Page 2 of').waitFor()
  })
})

describeInBrowser('a lost connection', () => {
  test('is shown, and the page recovers', async () => {
    const { receiver, state } = await failing(1)
    const url = await serveInbox(receiver)
    const page = await openPage({ url })
    await page.route('**/*', (route) => route.abort())
    await page.getByText('not connected, retrying').waitFor()
    await page.getByRole('button', { name: 'Replay it' }).click()
    await page.unroute('**/*')
    await page.getByText('● live').waitFor()
    state.works = true
    await page.getByRole('button', { name: 'Replay it' }).click()
    await notice(page).getByText('1 dead letter replayed').waitFor()
  })
})

describeInBrowser('an inbox that cannot be reached', () => {
  test('is shown with status 503 and logged once, and the page recovers', async () => {
    const { receiver } = await failing(1)
    let isDown = false
    const lines: string[] = []
    const { deadLetters, events } = receiver.inbox
    const stats = async () => {
      if (isDown) throw new WebhookError('unavailable', 'Postgres cannot be reached', { cause: new Error('secret') })
      return receiver.inbox.stats()
    }
    const logger = { ...silent, error: (_: object, line: string) => void lines.push(line) }
    const inbox = { stats, deadLetters, events }
    const url = await serve(createDashboard({ inbox, name: 'postgresInbox', logger }, { authorize: () => true }).node)
    const page = await openPage({ url })
    isDown = true
    await page.getByRole('heading', { name: 'The inbox cannot be reached' }).waitFor()
    const response = await fetch(url)
    expect(response.status).toBe(503)
    expect(await response.text()).toContain('Postgres cannot be reached')
    expect(lines).toEqual(['the dashboard cannot read the inbox'])
    isDown = false
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await firstCause(page).waitFor()
  })
})

describeInBrowser('a session that has ended', () => {
  test('leads to the page where users sign in', async () => {
    let isSignedIn = true
    const { receiver } = await failing(1)
    const page = dashboard(receiver, {
      path: '/inbox',
      authorize: () => isSignedIn || new Response(null, { status: 302, headers: { location: '/login' } }),
    })
    const origin = await serve((request, response) => {
      if (request.url?.startsWith('/inbox')) return void page.node(request, response)
      response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Sign in</h1>')
    })
    const shown = await openPage({ url: `${origin}/inbox` })
    isSignedIn = false
    await shown.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect(new URL(shown.url()).pathname).toBe('/login')
  })
})

describeInBrowser('a page for this machine only', () => {
  test('opens with the URL that was printed, without the token in its address, and acts', async () => {
    const log = vi.spyOn(console, 'log').mockReturnValue()
    onTestFinished(() => log.mockRestore())
    const { receiver, state } = await failing(1)
    const url = await serveInbox(receiver, { authorize: localOnly() })
    expect((await fetch(url)).status).toBe(403)
    const page = await openPage({ url: /http:\S+/.exec(log.mock.calls.flat().join())?.[0] ?? '' })
    state.works = true
    await firstCause(page).getByRole('button', { name: 'Replay' }).click()
    await notice(page).getByText('1 dead letter replayed').waitFor()
    expect(page.url()).not.toContain('token')
  })
})
