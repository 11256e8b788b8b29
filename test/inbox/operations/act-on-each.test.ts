import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { WebhookError } from '../../../src/errors.ts'
import {
  type Acted,
  type ActOnBatch,
  actOnEach,
  oneByOne,
  type Pace,
} from '../../../src/inbox/operations/act-on-each.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => void vi.useRealTimers())

/** Notes the batches that it is given, with their times in ms, before it acts. */
function noting(act: ActOnBatch) {
  const startedAt = performance.now()
  const tries: [keys: string, ms: number][] = []
  const noted: ActOnBatch = (keys, done) => {
    tries.push([keys.join(' '), Math.round(performance.now() - startedAt)])
    return act(keys, done)
  }
  return { act: noted, tries }
}

const noteKeys = (act: (key: string) => boolean | Promise<boolean> = () => true) => noting(oneByOne(act))

/** Acts to the end, and returns what it yields. */
async function run(keys: readonly string[], act: ActOnBatch, pace: Pace = {}): Promise<Acted[]> {
  const yielded: Acted[] = []
  const ended = (async () => {
    for await (const acted of actOnEach(keys, act, pace)) yielded.push(acted)
  })()
  let isEnded = false
  const end = () => {
    isEnded = true
  }
  ended.then(end, end)
  // Timers are also set after a turn of the event loop.
  for (; !isEnded; await new Promise((resolve) => setImmediate(resolve))) await vi.runAllTimersAsync()
  await ended
  return yielded
}

const summary = (acted: readonly Acted[]) => acted.map(({ key, outcome }) => `${key} ${outcome}`)

const keysOf = (count: number) => Array.from({ length: count }, (_, index) => `${index + 1}`)

const fail = (...[code, message]: ConstructorParameters<typeof WebhookError>): never => {
  throw new WebhookError(code, message)
}
const full = () => fail('overloaded', 'too many events are waiting')

describe('the pace', () => {
  test('is so many in a second, one after another', async () => {
    const { act, tries } = noteKeys()
    expect(summary(await run(keysOf(3), act, { perSecond: 100 }))).toEqual(['1 done', '2 done', '3 done'])
    expect(tries).toEqual([
      ['1', 0],
      ['2', 10],
      ['3', 20],
    ])
  })

  test('is kept on average, also if one of them takes its time', async () => {
    const { act, tries } = noteKeys(async (key) => {
      if (key === '1') await new Promise((resolve) => setTimeout(resolve, 600))
      return true
    })
    await run(keysOf(4), act, { perSecond: 4 })
    expect(tries).toEqual([
      ['1', 0],
      ['2', 600],
      ['3', 600],
      ['4', 750],
    ])
  })

  test.each([
    [{ batchSize: 100 }, [100, 100, 50], [0, 0, 0]],
    [{ batchSize: 100, perSecond: 1_250 }, [100, 100, 50], [0, 80, 160]],
    [{ batchSize: 100, perSecond: 800 }, [80, 80, 80, 10], [0, 100, 200, 300]],
  ])('of batches follows from %o', async (pace, sizes, times) => {
    const { act, tries } = noteKeys()
    await run(keysOf(250), act, pace)
    expect(tries.map(([keys]) => keys.split(' ').length)).toEqual(sizes)
    expect(tries.map(([, ms]) => ms)).toEqual(times)
  })

  test('leaves the event loop its turns, also if the inbox answers without I/O', async () => {
    let isTurn = false
    const since: boolean[] = []
    await run(
      ['1', '2', '3'],
      oneByOne(() => {
        since.push(isTurn)
        isTurn = false
        setImmediate(() => {
          isTurn = true
        })
        vi.advanceTimersByTime(5)
        return true
      }),
    )
    expect(since).toEqual([false, true, true])
  })
})

describe('an inbox that is full', () => {
  test('is waited for, and asked for the same event again', async () => {
    let calls = 0
    const { act, tries } = noteKeys(() => (++calls <= 2 ? full() : true))
    expect(summary(await run(['1', '2'], act))).toEqual(['1 done', '2 done'])
    expect(tries).toEqual([
      ['1', 0],
      ['1', 500],
      ['1', 1_000],
      ['2', 1_000],
    ])
  })

  test('may take the events of a batch one by one', async () => {
    let room = 3
    const { act, tries } = noting((keys, done) => {
      if (keys.length > room) full()
      room -= keys.length
      for (const key of keys) done.add(key)
    })
    setTimeout(() => {
      room = 4
    }, 700)
    expect(summary(await run(keysOf(6), act, { batchSize: 4 }))).toEqual(keysOf(6).map((key) => `${key} done`))
    expect(tries).toEqual([
      ['1 2 3 4', 0],
      ['1', 0],
      ['2', 0],
      ['3', 0],
      ['4', 0],
      ['4', 500],
      ['4', 1_000],
      ['5 6', 1_000],
    ])
  })
})

describe('an event', () => {
  test('that the inbox refuses stays, with the reason, and the others continue', async () => {
    const { act } = noteKeys((key) => {
      if (key === 'unreadable') fail('malformed', 'type is missing')
      if (key === 'running') fail('in_progress', 'the event is being handled')
      return key === 'good'
    })
    expect(await run(['unreadable', 'running', 'gone', 'good'], act)).toEqual([
      { key: 'unreadable', outcome: 'refused', reason: 'type is missing' },
      { key: 'running', outcome: 'refused', reason: 'the event is being handled' },
      { key: 'gone', outcome: 'gone' },
      { key: 'good', outcome: 'done' },
    ])
  })

  test('that is refused in a batch costs none of the others, and none of them is acted on twice', async () => {
    const { act, tries } = noting((keys, done) => {
      for (const key of keys) {
        if (key === 'unreadable') fail('malformed', 'type is missing')
        done.add(key)
      }
    })
    const acted = await run(['1', 'unreadable', '2', '3'], act, { batchSize: 10 })
    expect(summary(acted)).toEqual(['1 done', 'unreadable refused', '2 done', '3 done'])
    expect(tries.map(([keys]) => keys)).toEqual(['1 unreadable 2 3', 'unreadable', '2', '3'])
  })

  test('of a batch that the inbox no longer has is gone', async () => {
    const { act } = noting((keys, done) => {
      for (const key of keys) if (key !== '2') done.add(key)
    })
    expect(summary(await run(keysOf(3), act, { batchSize: 10 }))).toEqual(['1 done', '3 done', '2 gone'])
  })
})

describe('a signal', () => {
  test('ends it before the next event', async () => {
    const stop = new AbortController()
    const { act, tries } = noteKeys(() => {
      stop.abort()
      return true
    })
    expect(summary(await run(keysOf(3), act, { signal: stop.signal }))).toEqual(['1 done'])
    expect(tries).toEqual([['1', 0]])
  })

  test.each([
    ['the next event', () => true, 1],
    ['room in the inbox', full, 0],
  ])('ends it at once while it waits for %s', async (_, result, done) => {
    const startedAt = performance.now()
    const stop = new AbortController()
    const { act, tries } = noteKeys(result)
    setTimeout(() => stop.abort(), 300)
    expect(await run(keysOf(2), act, { perSecond: 1, signal: stop.signal })).toHaveLength(done)
    expect(tries).toHaveLength(1)
    expect(performance.now() - startedAt).toBe(300)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('ends it before anything is done, if it is aborted already', async () => {
    const { act, tries } = noteKeys()
    expect(await run(keysOf(2), act, { signal: AbortSignal.abort() })).toEqual([])
    expect(tries).toEqual([])
  })
})

test.each([
  new WebhookError('unavailable', 'the database cannot be reached'),
  new WebhookError('closing', 'the inbox is closing'),
  new Error('out of memory'),
])('an error of the inbox ends it, after what was done is reported: %s', async (error) => {
  const yielded: Acted[] = []
  const { act, tries } = noting((keys, done) => {
    done.add(keys[0] as string)
    throw error
  })
  const acting = (async () => {
    for await (const acted of actOnEach(keysOf(4), act, { batchSize: 2 })) yielded.push(acted)
  })()
  await expect(acting).rejects.toBe(error)
  expect(summary(yielded)).toEqual(['1 done'])
  expect(tries).toEqual([['1 2', 0]])
})
