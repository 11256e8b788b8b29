import { expect, test } from 'vitest'
import { sqliteInbox } from '../../../../src/inbox/sqlite.ts'
import { freshPath } from '../../../inbox/sqlite/sqlite-tests.ts'
import { describeInBrowser } from '../../../support/browser.ts'
import { receiverWith, send, untilDead } from '../failing-receiver.ts'
import { handsOn } from './operators.ts'

const events = 5_000

describeInBrowser('an operator', () => {
  test('replays 5,000 events that the fix repaired, and sees that they succeed', async () => {
    const receiver = receiverWith({ inbox: sqliteInbox({ path: await freshPath() }), retry: { attempts: 1 } })
    const state = { works: false, handled: 0 }
    receiver.on('encoding.finished', () => {
      if (!state.works) throw new Error('the catalogue is closed')
      state.handled++
    })
    await receiver.ready()
    for (let index = 0; index < events; index++) await send(receiver, `film-${index}`)
    await untilDead(receiver, events)
    state.works = true
    const { page, click } = await handsOn(receiver)
    await click('button', 'Replay all 5,000')
    await page.getByText(/^[\d,]+ of 5,000, [\d,]+ replayed\.$/).waitFor()
    await page.getByText('5,000 events handled since.').waitFor()
    await page.getByText('5,000 dead letters replayed.').waitFor()
    expect(state.handled).toBe(events)
    await click('link', 'Overview')
    await page.getByText('There are no dead letters.').waitFor()
    await page.locator('#operations').getByText('5,000 events handled since.').waitFor()
  })
})
