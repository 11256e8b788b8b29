import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { WebhookError } from '../../../src/errors.ts'
import { replayAll } from '../../../src/inbox/operations/replay-all.ts'
import type { ReplayAllOptions } from '../../../src/inbox/reading.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => void vi.useRealTimers())

/** Makes dead letters, the oldest first, and notes the tries to replay them with their times, in ms. */
function deadLetters(keys: readonly string[], replay: (key: string) => Promise<boolean> = async () => true) {
  const startedAt = performance.now()
  const tries: [key: string, ms: number][] = []
  return {
    tries,
    keys: () => keys,
    replay(key: string) {
      tries.push([key, Math.round(performance.now() - startedAt)])
      return replay(key)
    },
  }
}

const replayLetters = (letters: ReturnType<typeof deadLetters>, options?: ReplayAllOptions) =>
  replayAll(letters, options, letters.keys)

/** Runs timers until a promise settles, also those that are set after a turn of the event loop. */
async function runTimersUntil(promise: Promise<unknown>): Promise<void> {
  let isSettled = false
  promise.then(
    () => {
      isSettled = true
    },
    () => {
      isSettled = true
    },
  )
  while (!isSettled) {
    await vi.runAllTimersAsync()
    await new Promise((resolve) => setImmediate(resolve))
  }
}

const fail = async (...[code, message]: ConstructorParameters<typeof WebhookError>) => {
  throw new WebhookError(code, message)
}

describe('a replay of all dead letters', () => {
  test('replays 100 in a second by default, one after another', async () => {
    const letters = deadLetters(['1', '2', '3'])
    const replayed = replayLetters(letters)
    await runTimersUntil(replayed)
    expect(await replayed).toEqual({ total: 3, replayed: 3, kept: 0 })
    expect(letters.tries).toEqual([
      ['1', 0],
      ['2', 10],
      ['3', 20],
    ])
  })

  test('replays each dead letter once, however many', async () => {
    for (const count of [1_000, 2_500]) {
      const keys = Array.from({ length: count }, (_, index) => `key ${index}`)
      const letters = deadLetters(keys)
      const replayed = replayLetters(letters, { perSecond: 1_000_000 })
      await runTimersUntil(replayed)
      expect(await replayed).toEqual({ total: count, replayed: count, kept: 0 })
      expect(letters.tries.map(([key]) => key)).toEqual(keys)
    }
  })

  test('ends before the next one if it is aborted', async () => {
    const stop = new AbortController()
    const letters = deadLetters(['1', '2', '3'])
    const onProgress = vi.fn(() => stop.abort())
    const replayed = replayLetters(letters, { signal: stop.signal, onProgress })
    await runTimersUntil(replayed)
    expect(await replayed).toEqual({ total: 3, replayed: 1, kept: 0 })
    expect(letters.tries).toEqual([['1', 0]])
    expect(onProgress).toHaveBeenCalledOnce()
  })

  test.each([
    [
      'throws',
      () => {
        throw new Error('the disk is full')
      },
    ],
    ['rejects', () => new Promise<void>((_, reject) => setTimeout(reject, 100, new Error('the disk is full')))],
  ])('rejects, and replays nothing more, when onProgress %s', async (_, onProgress) => {
    const letters = deadLetters(['1', '2'])
    const rejected = expect(replayLetters(letters, { onProgress })).rejects.toThrow('the disk is full')
    await vi.runAllTimersAsync()
    await rejected
    expect(letters.tries).toEqual([['1', 0]])
  })

  test('leaves dead letters that cannot be replayed as they are, and continues', async () => {
    const replay = async (key: string) => {
      if (key === 'unreadable') return fail('malformed', 'type is missing')
      if (key === 'running') return fail('in_progress', 'the event is being handled')
      return key === 'good'
    }
    const letters = deadLetters(['unreadable', 'running', 'gone', 'good'], replay)
    const onProgress = vi.fn()
    const replayed = replayLetters(letters, { onProgress })
    await runTimersUntil(replayed)
    expect(await replayed).toEqual({ total: 4, replayed: 1, kept: 3 })
    expect(onProgress.mock.calls.map(([report]) => report)).toEqual([
      { total: 4, replayed: 0, kept: 1 },
      { total: 4, replayed: 0, kept: 2 },
      { total: 4, replayed: 0, kept: 3 },
      { total: 4, replayed: 1, kept: 3 },
    ])
  })
})
