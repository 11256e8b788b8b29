import { expect, test } from 'vitest'
import { sqliteInbox } from '../../../../src/inbox/sqlite.ts'
import { deliver } from '../../../../src/testing/index.ts'
import { freshPath } from '../../../inbox/sqlite/sqlite-tests.ts'
import { accessibilityFaults, describeInBrowser, openPage } from '../../../support/browser.ts'
import { future } from '../../../support/unreadable.ts'
import { failing, receiverWith, send, untilDead } from '../failing-receiver.ts'
import { firstCause, serveInbox } from './operators.ts'

/** Makes an inbox with content for each page. */
async function busy() {
  // It keeps unreadable deliveries, and remembers handled events.
  const receiver = receiverWith({ inbox: sqliteInbox({ path: await freshPath() }) })
  await receiver.ready()
  receiver.on('encoding.finished', () => Promise.reject(new Error('the catalogue is down')), { name: 'publish' })
  receiver.on('file.received', () => {}, { name: 'index' })
  for (let media = 1; media <= 60; media++) await send(receiver, `media-${media}`)
  await send(receiver, 'media-1', { type: 'file.received' })
  for (const body of [future, new Uint8Array([0xff, 0xfe])]) expect((await deliver(receiver, body)).status).toBe(400)
  await untilDead(receiver, 62)
  const dead = await receiver.inbox.deadLetters.list()
  receiver.on('encoding.started', () => new Promise(() => {}), { name: 'slow' })
  for (const media of ['a', 'a', 'b']) await send(receiver, media, { type: 'encoding.started' })
  await expect.poll(async () => (await receiver.inbox.stats()).running).toBe(2)
  const readable = dead.find(({ event }) => event !== undefined)
  const unreadable = dead.flatMap(({ key, event }) => (event === undefined ? key : []))
  const keys = [readable?.key ?? '', ...unreadable].map(encodeURIComponent)
  return { url: await serveInbox(receiver), stories: keys.map((key) => `event?key=${key}`) }
}

const schemes = ['light', 'dark'] as const

describeInBrowser('accessibility', () => {
  test.each(schemes)('no page has a fault that axe finds (%s)', async (colorScheme) => {
    const { url, stories } = await busy()
    const page = await openPage({ url }, { colorScheme })
    const check = async (name: string) => expect([name, ...(await accessibilityFaults(page))]).toEqual([name])
    await check('overview')
    expect(stories).toHaveLength(3)
    for (const place of [
      'events',
      'dead-letters',
      ...stories,
      'media?id=media-1',
      'numbers',
      'event?key=none',
      'nothing',
    ]) {
      await page.goto(`${url}/${place}`)
      await check(place)
    }
    await page.goto(`${url}/dead-letters`)
    await firstCause(page).getByRole('link').click()
    await page.getByRole('heading', { name: 'of one cause' }).waitFor()
    await check('one cause')
    await page.getByRole('checkbox').first().check()
    await check('a selection')
    await page.getByRole('button', { name: 'Discard the selected' }).click()
    await page.getByRole('heading', { name: 'Discard this dead letter?' }).waitFor()
    await page.getByRole('link', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'Discard all 60' }).click()
    await page.getByRole('heading', { name: 'Discard 60 dead letters?' }).waitFor()
    await check('question')
  })

  test.each(schemes)('the progress of an action also has none (%s)', async (colorScheme) => {
    const { receiver } = await failing(1_000)
    const page = await openPage({ url: await serveInbox(receiver) }, { colorScheme })
    await page.getByRole('button', { name: /^Replay all 1/ }).click()
    await page.getByRole('button', { name: 'Stop' }).waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByText('The rest is unchanged').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
  })
})
