import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { WebhookError } from '../../../../src/index.ts'
import { BulkActions } from '../../../../src/operate/dashboard/acting/bulk-actions.ts'
import { Redaction } from '../../../../src/operate/dashboard/reading/redaction.ts'
import { silent } from '../../../support/silent.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => void vi.useRealTimers())

type Replay = (key: string) => Promise<boolean>

/** Makes the actions of an inbox, and records the events that they replay or discard, with the times in ms. */
function subject(replay: Replay = async () => true) {
  const startedAt = performance.now()
  const elapsed = () => Math.round(performance.now() - startedAt)
  const tries: [key: string, ms: number][] = []
  const act = (key: string) => {
    tries.push([key, elapsed()])
    return replay(key)
  }
  const changed = vi.fn()
  const inbox = {
    stats: () => ({ waiting: 0, running: 0, retrying: 0, deadLetters: 0 }),
    deadLetters: { list: () => [], get: () => undefined, discard: act, replay: act },
  }
  const actions = new BulkActions({ inbox, redaction: new Redaction(undefined, silent) }, changed)
  const start = (keys: readonly string[], act: 'replay' | 'discard' = 'replay') =>
    actions.start(act, { scope: 'keys', keys })
  return { actions, start, tries, changed, elapsed }
}

const full: Replay = async () => {
  throw new WebhookError('overloaded', 'too many events are waiting')
}

describe('an action', () => {
  test('replays 100 events in a second', async () => {
    const { start, tries, changed } = subject()
    const { action, ended } = start(['1', '2', '3'])
    expect(action).toMatchObject({ state: 'running', done: 0 })
    await vi.runAllTimersAsync()
    await ended
    expect(action).toMatchObject({ state: 'done', total: 3, done: 3, gone: 0 })
    expect(tries).toEqual([
      ['1', 0],
      ['2', 10],
      ['3', 20],
    ])
    expect(changed).toHaveBeenCalledOnce()
  })

  test('discards without a pause', async () => {
    const { start, tries } = subject()
    await start(['1', '2', '3'], 'discard').ended
    expect(tries).toEqual([
      ['1', 0],
      ['2', 0],
      ['3', 0],
    ])
  })

  test('waits while the inbox is full', async () => {
    let calls = 0
    const { start, tries } = subject(async (key) => (++calls <= 2 ? full(key) : true))
    const { action, ended } = start(['1'])
    await vi.runAllTimersAsync()
    await ended
    expect(action).toMatchObject({ state: 'done', done: 1 })
    expect(tries).toEqual([
      ['1', 0],
      ['1', 500],
      ['1', 1_000],
    ])
  })

  test('ends at once if it is stopped, and leaves the rest', async () => {
    const { actions, start, tries, elapsed } = subject()
    const { action, ended } = start(['1', '2', '3', '4'])
    await vi.advanceTimersByTimeAsync(15)
    actions.stop(action.id)
    await vi.runAllTimersAsync()
    await ended
    expect(action).toMatchObject({ state: 'stopped', total: 4, done: 2 })
    expect([tries.length, elapsed()]).toEqual([2, 15])
  })

  test('can be stopped while the inbox is full', async () => {
    let calls = 0
    const { actions, start, tries } = subject(async (key) => (++calls <= 5 ? full(key) : true))
    const { action, ended } = start(['1', '2'])
    await vi.advanceTimersByTimeAsync(600)
    actions.stop(action.id)
    await vi.runAllTimersAsync()
    await ended
    expect(action).toMatchObject({ state: 'stopped', done: 0 })
    expect(tries).toHaveLength(2)
  })

  test('is done if it is stopped when nothing is left', async () => {
    const results: Record<string, Replay> = {
      done: async () => true,
      gone: async () => false,
      kept: async () => {
        throw new WebhookError('malformed', 'type is missing')
      },
    }
    const { actions, start } = subject(async (key) => {
      if (key === 'kept') actions.stop(action.id)
      return (results[key] as Replay)(key)
    })
    const { action, ended } = start(['done', 'gone', 'kept'])
    await vi.runAllTimersAsync()
    await ended
    expect(action).toMatchObject({ state: 'done', total: 3, done: 1, gone: 1, kept: new Map([['type is missing', 1]]) })
  })

  test('counts the events that stay, by reason, and continues', async () => {
    const { start } = subject(async (key) => {
      if (key.startsWith('unreadable')) throw new WebhookError('malformed', 'type is missing')
      if (key === 'running') throw new WebhookError('in_progress', 'the event is being handled')
      return true
    })
    const { action, ended } = start(['unreadable 1', 'unreadable 2', 'running', 'good'])
    await vi.runAllTimersAsync()
    await ended
    const kept = new Map([
      ['type is missing', 2],
      ['the event is being handled', 1],
    ])
    expect(action).toMatchObject({ state: 'done', done: 1, kept })
  })

  test.each([new WebhookError('unavailable', 'the database cannot be reached'), new Error('out of memory')])(
    'ends with an error of the inbox: %s',
    async (error) => {
      const { start, tries, changed } = subject(() => Promise.reject(error))
      const { action, ended } = start(['1', '2'])
      await ended
      expect(action).toMatchObject({ state: 'failed', error })
      expect(tries).toHaveLength(1)
      expect(changed).toHaveBeenCalledOnce()
    },
  )
})

test('the newest 100 actions are remembered, and those that run', async () => {
  const { actions, start } = subject(() => new Promise(() => {}))
  const running = start(['never ends']).action
  const ids: string[] = []
  for (let i = 0; i < 100; i++) {
    const { action, ended } = start([])
    ids.push(action.id)
    await ended
  }
  expect(actions.get(running.id)).toBe(running)
  expect(actions.running()).toEqual([running])
  expect(ids.map((id) => actions.get(id) !== undefined)).toEqual([false, ...Array(99).fill(true)])
})
