import { expect, test } from 'vitest'
import { ReplayedEvents } from '../../../src/inbox/operations/replay-outcome.ts'
import type { EventState, InboxEvents } from '../../../src/inbox/reading.ts'

test('replayed events are counted by what became of them, and one that has ended is not asked for again', async () => {
  const states: Record<string, EventState | undefined> = { a: 'handled', b: 'dead', c: undefined, d: 'retrying' }
  const asked: string[] = []
  const get = async (key: string) => {
    asked.push(key)
    const state = states[key]
    return state && ({ state } as Awaited<ReturnType<InboxEvents['get']>>)
  }
  const replayed = new ReplayedEvents({ events: { get } as unknown as InboxEvents })
  for (const key of Object.keys(states)) replayed.add(key)
  expect(await replayed.count(1_000)).toEqual({ handled: 1, dead: 1, gone: 1, open: 1 })
  states['d'] = 'handled'
  asked.length = 0
  expect(await replayed.count(1_000)).toEqual({ handled: 2, dead: 1, gone: 1, open: 0 })
  expect(asked).toEqual(['d'])
})

test('counting ends when its time is over, and goes on where it was', async () => {
  const get = async () => ({ state: 'handled' }) as Awaited<ReturnType<InboxEvents['get']>>
  const replayed = new ReplayedEvents({ events: { get } as unknown as InboxEvents })
  for (let index = 0; index < 300; index++) replayed.add(`${index}`)
  expect((await replayed.count(-1)).open).toBe(299)
  expect(await replayed.count(1_000)).toEqual({ handled: 300, dead: 0, gone: 0, open: 0 })
})

test('open events are asked for in turn, and by one count at a time', async () => {
  const asked: string[] = []
  const get = async (key: string) => {
    asked.push(key)
    return { state: 'retrying' } as Awaited<ReturnType<InboxEvents['get']>>
  }
  const replayed = new ReplayedEvents({ events: { get } as unknown as InboxEvents })
  for (const key of ['a', 'b', 'c']) replayed.add(key)
  for (const _ of [1, 2]) await Promise.all([replayed.count(-1), replayed.count(-1)])
  expect(asked).toEqual(['a', 'b'])
})
