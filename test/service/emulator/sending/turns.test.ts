import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SendingTurns } from '../../../../src/service/emulator/sending/turns.ts'
import { computingTime } from '../../../support/own-time.ts'

const { signal } = new AbortController()
/** Lets every caller continue that has its turn. */
const settled = () => new Promise(setImmediate)

/** Asks for turns, and records in order who got one and how to end it. */
function takers(turns: SendingTurns) {
  const started: { readonly lane: string; readonly number: number; readonly end: () => void }[] = []
  let asked = 0
  return {
    started,
    ask(lane: string) {
      const number = asked++
      void turns.take(lane, signal).then((end) => started.push({ lane, number, end }))
    },
  }
}

describe('turns', () => {
  test('are given in order within a lane, never too many at a time, and in the end to every caller', async () => {
    const asks = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 60 })
    await fc.assert(
      fc.asyncProperty(asks, fc.integer({ min: 1, max: 9 }), fc.infiniteStream(fc.nat()), async (lanes, max, picks) => {
        const { started, ask } = takers(new SendingTurns(max))
        for (const lane of lanes) ask(lane)
        await settled()
        const running = new Set(started)
        while (running.size > 0) {
          expect(running.size).toBeLessThanOrEqual(max)
          const ended = [...running][picks.next().value % running.size]
          const before = started.length
          if (ended) running.delete(ended)
          ended?.end()
          await settled()
          for (const each of started.slice(before)) running.add(each)
        }
        expect(started).toHaveLength(lanes.length)
        for (const lane of new Set(lanes)) {
          const numbers = started.filter((each) => each.lane === lane).map(({ number }) => number)
          expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
        }
      }),
      { numRuns: 50 },
    )
  })

  test('are left for other lanes by a lane that never ends its own', async () => {
    const { started, ask } = takers(new SendingTurns(64))
    for (let i = 0; i < 100; i++) ask('slow')
    await settled()
    expect(started).toHaveLength(32)
    ask('fast')
    await settled()
    expect(started.at(-1)?.lane).toBe('fast')
  })

  test('are shared evenly in time', async () => {
    const { started, ask } = takers(new SendingTurns(12))
    for (const lane of ['a', 'b', 'c']) for (let i = 0; i < 100; i++) ask(lane)
    await settled()
    for (let i = 0; i < 100; i++) {
      started[i]?.end()
      await settled()
    }
    const running = started.slice(100).map(({ lane }) => lane)
    for (const lane of ['a', 'b', 'c']) expect(running.filter((each) => each === lane)).toHaveLength(3)
  })

  /** The shortest of three times to find the turns of many lanes, in ms. */
  async function timeToFind(lanes: number): Promise<number> {
    const times: number[] = []
    for (let round = 0; round < 3; round++) {
      const { started, ask } = takers(new SendingTurns(64))
      const computed = computingTime()
      for (let i = 0; i < lanes; i++) ask(`lane ${i}`)
      await settled()
      times.push(computed())
      expect(started).toHaveLength(64)
    }
    return Math.min(...times)
  }

  test('are found immediately even if many lanes wait', async () => {
    // It takes about 50 ms. If each lane were compared with all others, it would take more than 2 s, and 16 times as long
    // as for a quarter of the lanes. A process with much memory in use takes longer for both.
    expect(await timeToFind(20_000)).toBeLessThan(Math.max(1_000, 8 * (await timeToFind(5_000))))
  })

  test('are passed on by an aborted caller', async () => {
    const turns = new SendingTurns(1)
    const stop = new AbortController()
    const end = await turns.take('a', signal)
    const given = expect(turns.take('a', stop.signal)).rejects.toThrow('aborted')
    const next = turns.take('a', signal)
    stop.abort()
    end()
    await given
    await expect(next).resolves.toBeTypeOf('function')
  })
})
