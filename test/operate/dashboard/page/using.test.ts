import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { describeInBrowser, openPage, tabTo } from '../../../support/browser.ts'
import { failing, receiverWith, send, untilDead } from '../failing-receiver.ts'
import { firstCause, notice, openInbox, serveInbox } from './operators.ts'

describeInBrowser('the page is live', () => {
  test('it shows what arrives and what fails without a reload', async () => {
    const receiver = receiverWith()
    const page = await openInbox(receiver)
    await page.getByText('Nothing was received').waitFor()
    receiver.on('encoding.finished', () => Promise.reject(new Error('the catalogue is down')), { name: 'publish' })
    await send(receiver, 'a-film')
    await firstCause(page).getByText('the catalogue is down').waitFor()
    expect(await page.getByRole('link', { name: 'Dead letters: 1' }).textContent()).toBe('1')
  })

  test('it keeps what is selected, opened and typed, and the focus', async () => {
    const { receiver } = await failing(3)
    const page = await openInbox(receiver)
    await firstCause(page).getByRole('link').click()
    const box = page.getByRole('checkbox').first()
    await box.check()
    await page.getByRole('searchbox').fill('half typ')
    await box.focus()
    await send(receiver, 'media-4')
    await page.getByRole('heading', { name: '4 dead letters of one cause' }).waitFor()
    expect([await box.isChecked(), await page.getByRole('searchbox').inputValue()]).toEqual([true, 'half typ'])
    expect(await box.and(page.locator(':focus')).count()).toBe(1)
  })

  test('a list does not move while events are selected, which it says, and moves on after that', async () => {
    const { receiver } = await failing(3)
    const page = await openInbox(receiver)
    await firstCause(page).getByRole('link').click()
    await page.getByRole('heading', { name: '3 dead letters of one cause' }).waitFor()
    await page.getByRole('checkbox').nth(1).check()
    await page.mouse.move(0, 0)
    await send(receiver, 'media-4')
    await page.getByRole('heading', { name: '4 dead letters of one cause' }).waitFor()
    await page.getByText('The list is paused while events are selected.').waitFor()
    expect(await page.locator('tbody tr').count()).toBe(3)
    await page.getByRole('button', { name: 'Clear' }).click()
    await page.mouse.move(0, 0)
    await page.locator('h1').focus()
    await page.locator('tbody tr').nth(3).waitFor()
    expect(await page.getByText('The list is paused').count()).toBe(0)
  })

  test.each([
    ['points at it', (page: Page) => page.locator('tbody tr').first().hover()],
    ['moves the focus into it', (page: Page) => page.locator('tbody a').first().focus()],
    ['has scrolled down in it', (page: Page) => page.mouse.wheel(0, 600)],
  ])('a list does not move while the reader %s', async (_, use) => {
    const { receiver } = await failing(24)
    const page = await openInbox(receiver)
    await firstCause(page).getByRole('link').click()
    await page.getByRole('heading', { name: '24 dead letters of one cause' }).waitFor()
    await page.mouse.move(0, 0)
    await use(page)
    await send(receiver, 'media-25')
    await page.getByRole('heading', { name: '25 dead letters of one cause' }).waitFor()
    await page.getByText('The list is paused while you read it.').waitFor()
    expect(await page.locator('tbody tr').count()).toBe(24)
  })

  test('another page of a list replaces one with selected events', async () => {
    const { receiver } = await failing(60)
    const page = await openInbox(receiver)
    await firstCause(page).getByRole('link').click()
    await page.getByRole('heading', { name: '60 dead letters of one cause' }).waitFor()
    await page.getByRole('checkbox').first().check()
    await page.getByRole('link', { name: 'Older' }).click()
    await page.getByText('Page 2 of').waitFor()
    expect(await page.locator('tbody tr').count()).toBe(25)
    expect(await page.locator('input:checked').count()).toBe(0)
  })

  test('a question that waits for its answer stays', async () => {
    const { receiver } = await failing(2)
    const page = await openInbox(receiver)
    await page.getByRole('button', { name: 'Discard all 2' }).click()
    const question = page.getByRole('heading', { name: 'Discard 2 dead letters?' })
    await question.waitFor()
    // The page behind it would have been read again by then.
    await page.waitForTimeout(3_000)
    expect(await question.isVisible()).toBe(true)
    await page.getByRole('button', { name: 'permanently' }).click()
    await notice(page).getByText('2 dead letters discarded').waitFor()
    expect((await receiver.inbox.stats()).deadLetters).toBe(0)
  })

  test('a question is not replaced by an update that began just before it was shown', async () => {
    const { receiver } = await failing(2)
    const page = await openInbox(receiver)
    // Holds up the answers, once the question is one of them.
    await page.evaluate(`
      const { text } = Response.prototype
      const { dataset } = document.documentElement
      Response.prototype.text = async function () {
        const body = await text.call(this)
        const kind = body.includes('data-still') ? 'question' : 'update'
        if (kind === 'question' || dataset.question) {
          dataset[kind] = 'arrived'
          await new Promise((resolve) => addEventListener(kind, resolve, { once: true }))
        }
        return body
      }
    `)
    const arrived = (kind: string) => page.locator(`html[data-${kind}="arrived"]`).waitFor({ state: 'attached' })
    const release = (kind: string) => page.evaluate(`dispatchEvent(new Event('${kind}'))`)
    await page.getByRole('button', { name: 'Discard all 2' }).click()
    await arrived('question')
    await arrived('update')
    await release('question')
    const question = page.getByRole('heading', { name: 'Discard 2 dead letters?' })
    await question.waitFor()
    await release('update')
    expect(await question.isVisible()).toBe(true)
  })
})

describeInBrowser('two operators', () => {
  test('who act on the same event at the same time are told so', async () => {
    const { receiver, state } = await failing(2)
    const url = await serveInbox(receiver)
    // The page of the second one does not update itself, so it still shows what the first one has replayed.
    const [first, second] = [await openPage({ url }), await openPage({ url }, { javaScriptEnabled: false })]
    for (const page of [first, second]) {
      await firstCause(page).getByRole('link').click()
      await page.getByRole('heading', { name: '2 dead letters of one cause' }).waitFor()
      for (const box of await page.getByRole('checkbox').all()) await box.check()
    }
    state.works = true
    await first.getByRole('button', { name: 'Replay the selected' }).click()
    await notice(first).getByText('2 dead letters replayed').waitFor()
    await second.getByRole('button', { name: 'Replay the selected' }).click()
    await notice(second).getByText('2 dead letters skipped').waitFor()
  })
})

describeInBrowser('the keyboard alone', () => {
  test('is enough to find an event, read its story and replay it', async () => {
    const { receiver, state } = await failing(2)
    const page = await openInbox(receiver)
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await tabTo(page, firstCause(page).getByRole('link'))
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'of one cause' }).waitFor()
    await tabTo(page, page.locator('tbody a').first())
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'What happened' }).waitFor()
    state.works = true
    await tabTo(page, page.getByRole('button', { name: 'Replay' }))
    await page.keyboard.press('Enter')
    await notice(page).getByText('1 dead letter replayed').waitFor()
    expect((await receiver.inbox.stats()).deadLetters).toBe(1)

    await page.goBack()
    await page.getByRole('heading', { name: '1 dead letter of one cause' }).waitFor()
    await tabTo(page, page.getByRole('button', { name: 'Discard it…' }))
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Discard this dead letter?' }).waitFor()
    expect(await page.locator(':focus').textContent()).toBe('Discard this dead letter?')
    await tabTo(page, page.getByRole('button', { name: 'permanently' }))
    await page.keyboard.press('Enter')
    await notice(page).getByText('1 dead letter discarded').waitFor()
  })
})

describeInBrowser('a list', () => {
  test.each([true, false])('is saved as a file, with its filter (with a script: %s)', async (javaScriptEnabled) => {
    const { receiver } = await failing(3)
    const page = await openInbox(receiver, { javaScriptEnabled })
    await page.goto(`${page.url()}/dead-letters?text=media-2`)
    const saved = page.waitForEvent('download')
    await page.getByRole('link', { name: 'Save as JSON lines' }).click()
    const download = await saved
    expect(download.suggestedFilename()).toBe('dead-letters.jsonl')
    const text = await readFile(await download.path(), 'utf8')
    expect(JSON.parse(text).mediaId).toBe('media-2')
  })
})

describeInBrowser('a list under the pointer', () => {
  test('stays where it is while the page says that it is paused', async () => {
    const { receiver } = await failing(3)
    const page = await openInbox(receiver)
    await page.goto(`${page.url()}/dead-letters?text=media`)
    const row = page.locator('tbody tr').first()
    const before = await row.boundingBox()
    await row.hover()
    await page.getByText('The list is paused while you read it.').waitFor()
    expect(await row.boundingBox()).toEqual(before)
  })

  test('has states that stand beside the first line of an id that wraps', async () => {
    const receiver = receiverWith()
    receiver.on('encoding.finished', () => new Promise(() => {}), { name: 'slow' })
    await send(receiver, `${'long-'.repeat(30)}id`, { title: 'A title of some words' })
    const page = await openInbox(receiver, { viewport: { width: 800, height: 740 } })
    await page.goto(`${page.url()}/events`)
    const tops = await page
      .locator('tbody tr')
      .first()
      .locator('.state, .title a')
      .evaluateAll((all) => all.map((each) => Math.round(each.getClientRects()[0]?.top ?? 0)))
    expect(Math.abs((tops[0] ?? 0) - (tops[1] ?? 99))).toBeLessThan(6)
  })
})

describeInBrowser('the actions of a list', () => {
  test.each([true, false])(
    'stay in view, and are about all of it or what is selected (with a script: %s)',
    async (javaScriptEnabled) => {
      const { receiver, state } = await failing(60)
      const page = await openInbox(receiver, { javaScriptEnabled, viewport: { width: 390, height: 740 } })
      await firstCause(page).getByRole('link').click()
      const [all, some] = ['Replay all 60', 'Replay the selected'].map((name) => page.getByRole('button', { name }))
      await all?.waitFor()
      // The live page can replace the button at any time, which then has no box for a moment.
      const isInView = async () => {
        const { y, height } = (await all?.boundingBox()) ?? { y: 0, height: 0 }
        return y > 0 && y + height <= 740
      }
      await expect.poll(isInView).toBe(true)
      expect(await some?.isVisible()).toBe(false)
      await page.getByRole('checkbox').first().check()
      expect([await all?.isVisible(), await some?.isVisible()]).toEqual([false, true])
      state.works = true
      // The Enter key is about what is selected.
      await page.keyboard.press('Enter')
      await page.getByText('1 dead letter replayed.').waitFor()
      await page.getByRole('button', { name: 'Replay all 59' }).click()
      await page.getByText('59 dead letters replayed.').waitFor()
      expect((await receiver.inbox.stats()).deadLetters).toBe(0)
    },
  )
})

describeInBrowser('on a phone', () => {
  test.each(['light', 'dark'] as const)('every page fits into 360 pixels (%s)', async (colorScheme) => {
    const receiver = receiverWith()
    const long = 'x'.repeat(300)
    receiver.onAny(() => Promise.reject(new Error(long)), { name: `handler-${long}` })
    await send(receiver, `media-${long}`, { title: long, type: `type.${long}`, note: 'y'.repeat(40_000) })
    await untilDead(receiver, 1)
    const url = await serveInbox(receiver)
    const page = await openPage({ url }, { viewport: { width: 360, height: 740 }, colorScheme })
    const [dead] = await receiver.inbox.deadLetters.list()
    const key = encodeURIComponent(dead?.key ?? '')
    for (const place of [
      '',
      'events',
      'dead-letters',
      'numbers',
      `event?key=${key}`,
      `media?id=media-${long}`,
      'nothing',
    ]) {
      if (place !== '') await page.goto(`${url}/${place}`)
      expect([place, await page.evaluate('document.scrollingElement.scrollWidth')]).toEqual([place, 360])
    }
  })
})

describeInBrowser('without a script', () => {
  test('the page works with documents and forms', async () => {
    const { receiver, state } = await failing(3)
    const page = await openInbox(receiver, { javaScriptEnabled: false })
    await page.getByRole('searchbox').fill('media-2')
    await page.getByRole('button', { name: 'Find' }).click()
    await page.getByRole('link', { name: 'encoding.finished' }).click()
    await page.getByRole('button', { name: 'Discard…' }).click()
    await page.getByRole('heading', { name: 'Discard this dead letter?' }).waitFor()
    await page.getByRole('link', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'Discard…' }).click()
    await page.getByRole('button', { name: 'permanently' }).click()
    await page.getByText('1 dead letter discarded').waitFor()
    await page.getByRole('heading', { name: 'No event has this key' }).waitFor()

    await page.getByRole('link', { name: 'Events' }).click()
    await page.getByRole('combobox', { name: 'State' }).selectOption('dead')
    await page.getByRole('button', { name: 'Filter' }).click()
    state.works = true
    await page.getByRole('checkbox').first().check()
    await page.getByRole('button', { name: 'Replay the selected dead letters' }).click()
    await page.getByText('1 dead letter replayed').waitFor()
    expect(new URL(page.url()).searchParams.get('state')).toBe('dead')
    expect(await page.locator('tbody tr').count()).toBe(1)
  })

  test('the progress of an action is read again on its own', async () => {
    const { receiver, state } = await failing(400)
    const page = await openInbox(receiver, { javaScriptEnabled: false })
    state.works = true
    await page.getByRole('button', { name: 'Replay all 400' }).click()
    await page.getByRole('button', { name: 'Stop' }).waitFor()
    await page.getByText('400 dead letters replayed').waitFor()
  })
})
