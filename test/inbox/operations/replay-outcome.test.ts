import { expect, test } from 'vitest'
import { operationsHere, StoredOperations } from '../../../src/inbox/operations/operations.ts'
import { ReplayedEvents } from '../../../src/inbox/operations/replay-outcome.ts'
import type { EventOutcomes, EventState, InboxEvents } from '../../../src/inbox/reading.ts'

const remembering: readonly EventState[] = ['waiting', 'running', 'retrying', 'dead', 'handled']
const forgetful: readonly EventState[] = ['waiting', 'running', 'retrying', 'dead']

type Outcomes = Record<string, EventOutcomes[number]>

function following(all: Outcomes, states = remembering) {
  const asked: (readonly string[])[] = []
  const outcomes = async (keys: readonly string[]) => {
    asked.push(keys)
    return keys.map((key) => all[key])
  }
  const operations = new StoredOperations(operationsHere())
  const replayed = new ReplayedEvents({ events: { outcomes, states } as unknown as InboxEvents, operations })
  for (const key of Object.keys(all)) replayed.add(key)
  return { replayed, asked, operations }
}

test('replayed events are counted by what became of them, and one that has ended is not asked for again', async () => {
  const all: Outcomes = { a: 'handled', b: 'dead', c: undefined, d: 'open' }
  const { replayed, asked } = following(all)
  expect(await replayed.count()).toEqual({ handled: 1, dead: 1, gone: 1, open: 1 })
  all['d'] = 'handled'
  expect(await replayed.count()).toEqual({ handled: 2, dead: 1, gone: 1, open: 0 })
  expect(asked).toEqual([['a', 'b', 'c', 'd'], ['d']])
})

test('5,000 replayed events are counted in five steps, whoever asks at the same time', async () => {
  const keys = Array.from({ length: 5_000 }, (_, index) => `${index}`)
  const { replayed, asked } = following(Object.fromEntries(keys.map((key) => [key, 'handled'])))
  const counted = { handled: 5_000, dead: 0, gone: 0, open: 0 }
  expect(await Promise.all([replayed.count(), replayed.count()])).toEqual([counted, counted])
  expect(asked.map(({ length }) => length)).toEqual([1_000, 1_000, 1_000, 1_000, 1_000])
})

test('an inbox that forgets what it has handled has handled what is gone, unless some event was discarded since', async () => {
  const all: Outcomes = { a: undefined, b: 'open', 'unreadable:1': undefined }
  const { replayed, operations } = following(all, forgetful)
  await operations.add({ act: 'replay', keys: Object.keys(all) })
  expect(await replayed.count()).toEqual({ handled: 1, dead: 0, gone: 1, open: 1 })
  all['b'] = undefined
  await operations.add({ act: 'discard', keys: ['other'] })
  expect(await replayed.count()).toEqual({ handled: 0, dead: 0, gone: 3, open: 0 })
})
