import { expect, test } from 'vitest'
import type { ActivityMinute } from '../../../../src/inbox/reading.ts'
import { memoryInbox } from '../../../../src/index.ts'
import { createDashboard } from '../../../../src/operate/dashboard/dashboard.ts'
import type { Dashboard } from '../../../../src/operate/dashboard/index.ts'
import { silent } from '../../../support/silent.ts'
import { receiverWith, send, untilDead } from '../failing-receiver.ts'

/** Maximum size of a page as sent, in bytes: without compression. */
const limit = 40_000

/** Makes a day in which every minute is full. */
const busyDay = () =>
  Array.from({ length: 1_440 }, (_, index): ActivityMinute => {
    const counts = { accepted: 1, duplicates: 1, ignored: 1, rejected: 1, handled: 1, failed: 1 }
    const many = Object.fromEntries(Object.keys(counts).map((name) => [name, 1_000 + index])) as typeof counts
    const times = [1, 20, 300, 4_000, 50_000]
    return { startedAt: new Date(Date.now() - index * 60_000), ...many, acknowledgement: times, handling: times }
  })

/** A text in which each character takes six bytes in HTML, and three in an address. */
const hostile = (name: string, length: number) => `${name} ${'"'.repeat(length)}`

const ask = (page: Dashboard, place: string) => page.fetch(new Request(`http://localhost/${place}`))

/**
 * Makes a page of 200 causes, one of which has 60 dead letters more, and of a media item with 60 dead letters. Their
 * texts are as long and as heavy as can be.
 */
async function heavyPage() {
  const inbox = memoryInbox({ maxDeadLetters: 20_000, maxWaiting: 20_000 })
  const receiver = receiverWith({ inbox, retry: { attempts: 20, baseMs: 1, maxMs: 1 } })
  const letters = 'abcdefghijklmnopqrst'
  const causes = [...letters].flatMap((first) => [...letters.slice(0, 10)].map((second) => first + second))
  for (const name of letters.slice(0, 3))
    receiver.onAny(
      ({ title }) => {
        throw new Error(hostile(`no ${title?.slice(0, 2)} in ${name}`, 4_000))
      },
      { name: hostile(name, 300) },
    )
  let sent = 0
  const heavy = (name: string) =>
    send(receiver, hostile(`media-${sent++}`, 200), {
      title: hostile(name, 500),
      type: hostile(`type${sent}`, 300),
    })
  for (const name of causes) await heavy(name)
  for (let index = 0; index < 60; index++) await heavy('zz')
  for (let index = 0; index < 60; index++) await send(receiver, hostile('media', 200), { title: hostile('zz', 500) })
  await untilDead(receiver, 320)
  const { deadLetters, events } = receiver.inbox
  const shown = { deadLetters, events, stats: () => receiver.inbox.stats(), activity: () => busyDay() }
  const page = createDashboard({ inbox: shown, name: 'other', logger: silent }, { authorize: () => true })
  const list = await (await ask(page, 'dead-letters')).text()
  const [, cause = ''] = /dead-letters\?cause=(\w+)/.exec(list) ?? []
  return { page, cause }
}

// The page of one event has its whole texts, and so it can be larger.
test('with hostile events, every list is below 40 kB', async () => {
  const { page, cause } = await heavyPage()
  const places = [
    '',
    '?period=day',
    'numbers',
    'numbers?period=day',
    'events',
    'events?state=dead',
    'events?title=zz',
    'dead-letters',
    `dead-letters?cause=${cause}`,
    'dead-letters?text=no',
    `media?id=${encodeURIComponent(hostile('media', 200))}`,
    `event?key=${encodeURIComponent(hostile('none', 5_000))}`,
  ]
  const sizes = await Promise.all(
    places.map(async (place) => {
      const html = await (await ask(page, place)).text()
      return [place.slice(0, 40), new TextEncoder().encode(html).length]
    }),
  )
  expect(sizes.filter(([, size]) => Number(size) >= limit)).toEqual([])
})
