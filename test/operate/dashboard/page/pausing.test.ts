import { expect, test } from 'vitest'
import { sqliteInbox } from '../../../../src/inbox/sqlite.ts'
import { dashboard } from '../../../../src/operate/dashboard/index.ts'
import { freshPath } from '../../../inbox/sqlite/sqlite-tests.ts'
import { accessibilityFaults, describeInBrowser, openPage } from '../../../support/browser.ts'
import { recordingLogger } from '../../../support/recording-logger.ts'
import { serve } from '../../../support/serve.ts'
import { post, receiverWith, send } from '../failing-receiver.ts'
import { notice, serveInbox } from './operators.ts'

/** Makes a receiver that can be paused, with two handlers. */
async function pausable(options: Parameters<typeof receiverWith>[0] = {}) {
  const receiver = receiverWith({ inbox: sqliteInbox({ path: await freshPath() }), ...options })
  const runs: string[] = []
  for (const name of ['publish', 'index']) receiver.on('encoding.finished', () => void runs.push(name), { name })
  await receiver.ready()
  return { receiver, runs, pauses: receiver.inbox.pauses }
}

const places = ['', 'events', 'dead-letters', 'expected', 'event?key=none', 'media?id=m']

describeInBrowser('pausing', () => {
  test.each([true, false])(
    'the inbox and resuming it takes two clicks (with a script: %s)',
    async (javaScriptEnabled) => {
      const { receiver, runs } = await pausable()
      const url = await serveInbox(receiver, { authorize: () => ({ user: 'ana' }) })
      const page = await openPage({ url }, { javaScriptEnabled })
      await page.getByRole('button', { name: 'Pause the inbox' }).click()
      await notice(page).getByText('The inbox is paused.').waitFor()
      await send(receiver, 'a-film')
      for (const place of places) {
        await page.goto(`${url}/${place}`)
        expect(await page.locator('#paused').textContent()).toMatch(
          /This inbox is paused.*Since \d+ s ago, by anaResume/,
        )
      }
      expect(runs).toEqual([])
      await page.getByRole('button', { name: 'Resume the inbox' }).click()
      await notice(page).getByText('The inbox is resumed.').waitFor()
      expect(await page.locator('#paused').count()).toBe(0)
      await expect.poll(() => runs.toSorted()).toEqual(['index', 'publish'])
    },
  )

  test('a handler is offered by its name', async () => {
    const { receiver, runs, pauses } = await pausable()
    const page = await openPage({ url: await serveInbox(receiver) })
    const offered = page.locator('#pause button')
    expect(await offered.allTextContents()).toEqual(['Pause the inbox', 'Pause publish', 'Pause index', 'Pause it'])
    await page.getByRole('button', { name: 'Pause publish' }).click()
    await notice(page).getByText('The handler publish is paused.').waitFor()
    expect(await offered.allTextContents()).toEqual(['Pause the inbox', 'Pause index', 'Pause it'])
    expect(await pauses?.list()).toMatchObject([{ handler: 'publish' }])
    await send(receiver, 'a-film')
    await expect.poll(() => runs).toEqual(['index'])
    await page.getByRole('button', { name: 'Resume publish' }).click()
    await notice(page).getByText('The handler publish is resumed.').waitFor()
    await expect.poll(() => runs, { timeout: 10_000 }).toEqual(['index', 'publish'])
  })

  test('a handler that is not known asks first, and the result says so', async () => {
    const { receiver, pauses } = await pausable()
    const page = await openPage({ url: await serveInbox(receiver) })
    for (const end of ['Cancel', 'Pause it anyway']) {
      await page.getByLabel('Another handler').fill('pubish')
      await page.getByRole('button', { name: 'Pause it' }).click()
      await page.getByRole('heading', { name: 'Pause the unknown handler pubish?' }).waitFor()
      expect(await pauses?.list()).toEqual([])
      await page.getByText(end).click()
    }
    await notice(page).getByText('The handler pubish is paused. No known handler has this name.').waitFor()
    expect(await pauses?.list()).toMatchObject([{ handler: 'pubish' }])
  })

  test('shows nothing that axe finds, and fits into 360 pixels', async () => {
    const { receiver, pauses } = await pausable()
    await pauses?.pause({ by: 'ana' })
    await pauses?.pause({ handler: `<b>${'x'.repeat(200)}`, by: 'y'.repeat(200) })
    const url = await serveInbox(receiver)
    for (const colorScheme of ['light', 'dark'] as const)
      for (const width of [1_200, 360]) {
        const page = await openPage({ url }, { viewport: { width, height: 740 }, colorScheme })
        expect(await accessibilityFaults(page)).toEqual([])
        expect(await page.evaluate('document.scrollingElement.scrollWidth')).toBe(width)
      }
  })
})

test('a reader who may not act sees a pause, and can neither end it nor begin one', async () => {
  const { receiver, pauses } = await pausable()
  await pauses?.pause({ by: 'ana' })
  const readers = dashboard(receiver, { authorize: () => 'read' })
  const html = await (await readers.fetch(new Request('http://localhost/'))).text()
  expect(html).toContain('This inbox is paused')
  expect(html).not.toMatch(/action="\/(pause|resume)"/)
  const url = await serve(readers.node)
  for (const act of ['pause', 'resume']) expect((await post(`${url}/${act}`, { scope: 'inbox' })).status).toBe(403)
  expect(await pauses?.list()).toHaveLength(1)
})

test('an event whose handler is paused says what it waits for, and offers no retry', async () => {
  const { receiver, pauses, runs } = await pausable()
  await pauses?.pause({ handler: 'publish' })
  await send(receiver, 'a-film')
  await expect.poll(() => receiver.inbox.stats()).toMatchObject({ retrying: 1 })
  const page = dashboard(receiver, { authorize: () => true })
  const read = async (place: string) => (await page.fetch(new Request(`http://localhost/${place}`))).text()
  const [{ key = '' } = {}] = (await receiver.inbox.events?.list())?.events ?? []
  for (const place of ['', 'events', 'media?id=a-film', `event?key=${encodeURIComponent(key)}`]) {
    const html = await read(place)
    expect(html).toContain('<span class="state paused">')
    expect(html.replace(/<[^>]+>/g, '')).toMatch(/waits for\s*publish\s*\(paused\)/i)
    expect(html).not.toContain('Next attempt')
  }
  expect(await read(`event?key=${encodeURIComponent(key)}`)).not.toContain('Retry now')
  for (const place of ['', 'events?state=retrying']) {
    expect(await read(place)).not.toMatch(/Retry (?:it|all)/)
    expect(await read(place)).not.toContain('type="checkbox"')
  }
  expect(runs).toEqual(['index'])
})

test('pauses are logged with the operator, and a form without the name of a handler pauses nothing', async () => {
  const { logger, lines } = recordingLogger('info')
  const { receiver, pauses } = await pausable({ logger })
  const url = await serve(dashboard(receiver, { authorize: () => ({ user: 'ana' }) }).node)
  for (const form of [{ scope: 'handler' }, { scope: 'handler', handler: '' }, {}])
    expect((await post(`${url}/pause`, form as Record<string, string>)).status).toBe(400)
  expect(await pauses?.list()).toEqual([])
  expect((await post(`${url}/pause`, { scope: 'handler', handler: 'publish' })).status).toBe(303)
  expect((await post(`${url}/resume`, { scope: 'handler', handler: 'publish' })).status).toBe(303)
  const logged = lines.filter(({ message }) => message.endsWith('on the dashboard')).map(({ details }) => details)
  expect(logged).toEqual(
    ['pause', 'resume'].map((action) => ({ user: 'ana', action, handler: 'publish', changed: true })),
  )
})

test('an inbox that cannot be paused has no forms for it', async () => {
  const page = dashboard(receiverWith(), { authorize: () => true })
  expect(await (await page.fetch(new Request('http://localhost/'))).text()).not.toContain('Pause')
  expect((await post(`${await serve(page.node)}/pause`, { scope: 'inbox' })).status).toBe(400)
})
