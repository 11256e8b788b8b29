import { describe, expect, test } from 'vitest'
import type { Handle } from '../../../src/inbox/inbox.ts'
import { memoryInbox } from '../../../src/inbox/memory.ts'
import { eventOf } from '../../support/inbox.ts'
import { openWith } from '../../support/open-with.ts'
import { seeded } from '../../support/seeded.ts'
import { answerLost, type Interceptor, interceptedStore } from './intercepted-store.ts'

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** A store on a bad network: calls are slow, are lost, or lose their answer. */
function badNetwork(random: () => number) {
  const { store, intercept } = interceptedStore()
  const unreliable: Interceptor = async (carryOut, key) => {
    await sleep(random() * 4)
    const luck = random()
    if (luck < 0.15) throw new Error('connection refused')
    return luck < 0.3 ? answerLost(carryOut, key) : carryOut()
  }
  intercept.claim = intercept.renew = intercept.complete = intercept.release = unreliable
  return store
}

/** Opens an inbox on a bad network whose handlers sometimes fail, and counts how often each event is done. */
function unluckyInbox(seed: number) {
  const random = seeded(seed)
  const done = new Map<string, number>()
  const handle: Handle = async ({ event: { key } }, { completed }) => {
    await sleep(random() * 5)
    if (random() < 0.3) return { status: 'retry', delayMs: random() * 10, completed, failures: [] }
    done.set(key, (done.get(key) ?? 0) + 1)
    return { status: 'done' }
  }
  const inbox = openWith(memoryInbox({ store: badNetwork(random), leaseMs: 60 }), handle)
  return { inbox, done, random }
}

const keys = Array.from({ length: 60 }, (_, i) => `event-${i}`)

describe('on a bad network', () => {
  test.each([1, 2, 3])('every event is done exactly once if the sender keeps trying (%i)', async (seed) => {
    const { inbox, done, random } = unluckyInbox(seed)
    const send = async (key: string) => {
      await sleep(random() * 30)
      for (;;) {
        try {
          return await inbox.accept(eventOf(key, `media-${key.at(-1)}`))
        } catch {
          await sleep(random() * 10)
        }
      }
    }
    const answers = await Promise.all(keys.map((key) => Promise.all([send(key), send(key), send(key)])))
    for (const answer of answers) expect(answer.toSorted()).toEqual(['accepted', 'duplicate', 'duplicate'])
    expect(await inbox.close()).toEqual({ unfinished: [] })
    expect(done).toEqual(new Map(keys.map((key) => [key, 1])))
  })

  test.each([4, 5, 6])(
    'every acknowledged event is handled or reported as unfinished when the inbox closes early (%i)',
    async (seed) => {
      const { inbox, done, random } = unluckyInbox(seed)
      const acknowledged = new Set<string>()
      const send = async (key: string) => {
        await sleep(random() * 60)
        for (let attempt = 0; attempt < 5; attempt++) {
          try {
            await inbox.accept(eventOf(key, `media-${key.at(-1)}`))
            return acknowledged.add(key)
          } catch {
            await sleep(random() * 10)
          }
        }
      }
      const sent = Promise.all([...keys, ...keys].map(send))
      await sleep(30)
      const { unfinished } = await inbox.close({ timeoutMs: 10 })
      const doneInTime = new Set(done.keys())
      await sent
      const reported = unfinished.map(({ event }) => event.key)
      expect(new Set(reported).size).toBe(reported.length)
      for (const key of acknowledged) expect([key, doneInTime.has(key) || reported.includes(key)]).toEqual([key, true])
      for (const times of done.values()) expect(times).toBe(1)
    },
  )
})
