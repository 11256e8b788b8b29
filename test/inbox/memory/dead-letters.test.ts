import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { lruStore } from '../../../src/idempotency/lru.ts'
import { memoryInbox } from '../../../src/inbox/memory.ts'
import { type Call, type Calls, eventOf, openInbox, until } from '../../support/inbox.ts'
import { silent } from '../../support/silent.ts'

const withCode = (code: string) => expect.objectContaining({ name: 'WebhookError', code })

/** Finishes the next attempt with no attempts left. */
async function letDie(calls: Calls, key: string): Promise<Call> {
  const call = await calls.next()
  call.finish({ status: 'dead', completed: [], failures: [{ handler: 'h', message: `Error: ${key}` }] })
  return call
}

describe('the dead letters of a memory inbox', () => {
  test('are the newest, and a dropped one is logged without its payload', async () => {
    const error = vi.fn()
    const { inbox, calls } = openInbox(memoryInbox({ maxDeadLetters: 2 }), { ...silent, error })
    for (const key of ['1', '2', '3']) {
      await inbox.accept(eventOf(key))
      await letDie(calls, key)
    }
    await until(async () => inbox.deadLetters.get('3') !== undefined)
    expect((await inbox.deadLetters.list()).map(({ key }) => key)).toEqual(['3', '2'])
    expect(error.mock.calls).toEqual([[{ key: '1' }, 'a dead letter was dropped to make room for a newer one']])
  })

  test('are the newest for which there is memory, and one at least', async () => {
    const { inbox, calls } = openInbox(memoryInbox({ maxDeadLetters: 3 }))
    const listed = async () => (await inbox.deadLetters.list()).map(({ key }) => key)
    // 60 and 120 kB, with two bytes for each character. All of them may take 98 kB.
    for (const [key, length] of [
      ['1', 30_000],
      ['2', 30_000],
      ['3', 60_000],
    ] as const) {
      const { event, receivedAt } = eventOf(key)
      await inbox.accept({ event: { ...event, payload: { text: 't'.repeat(length) } }, receivedAt })
      await letDie(calls, key)
      await until(async () => (await listed()).includes(key))
      expect(await listed()).toEqual([key])
    }
  })

  test('stay in the same order when they are read', async () => {
    const { inbox, calls } = openInbox(memoryInbox({ maxDeadLetters: 2 }))
    for (const key of ['1', '2', '3']) {
      await inbox.accept(eventOf(key))
      await letDie(calls, key)
      await nextTurn()
      await inbox.deadLetters.get('1')
    }
    expect((await inbox.deadLetters.list()).map(({ key }) => key)).toEqual(['3', '2'])
  })

  test('leave the list when their replay starts, and are reported as unfinished when closing cuts it short', async () => {
    const { inbox, calls } = openInbox(memoryInbox())
    await inbox.accept(eventOf('1'))
    await letDie(calls, '1')
    await until(async () => (await inbox.stats()).deadLetters === 1)
    await inbox.deadLetters.replay('1')
    await calls.next()
    const { unfinished } = await inbox.close({ timeoutMs: 1 })
    expect(unfinished.map(({ event, state }) => [event.key, state])).toEqual([['1', 'running']])
  })

  test('are not replayed while a later delivery of the event is handled, which the store had forgotten', async () => {
    const { inbox, calls } = openInbox(memoryInbox({ store: lruStore({ max: 1 }) }))
    for (const key of ['dead', 'other']) {
      await inbox.accept(eventOf(key))
      await letDie(calls, key)
    }
    await until(async () => (await inbox.stats()).deadLetters === 2)
    expect(await inbox.accept(eventOf('dead'))).toBe('accepted')
    const again = await calls.next()
    expect(() => inbox.deadLetters.replay('dead')).toThrow(withCode('in_progress'))
    expect(await inbox.deadLetters.get('dead')).toBeDefined()
    again.finish()
    await until(async () => (await inbox.stats()).running === 0)
    expect(await inbox.deadLetters.replay('dead')).toBe(true)
  })

  test('can be read but not replayed once the inbox is closed', async () => {
    const { inbox, calls } = openInbox(memoryInbox())
    await inbox.accept(eventOf('1'))
    await letDie(calls, '1')
    await inbox.close()
    expect(() => inbox.deadLetters.replay('1')).toThrow(withCode('closing'))
    expect(await inbox.deadLetters.get('1')).toMatchObject({ attempts: 1, failures: [{ message: 'Error: 1' }] })
  })

  test('are kept if there is no room to replay them', async () => {
    const { inbox, calls } = openInbox(memoryInbox({ maxWaiting: 1 }))
    await inbox.accept(eventOf('dead'))
    await letDie(calls, 'dead')
    await until(async () => (await inbox.stats()).deadLetters === 1)
    await inbox.accept(eventOf('waiting'))
    expect(() => inbox.deadLetters.replay('dead')).toThrow(withCode('overloaded'))
    expect(await inbox.deadLetters.get('dead')).toBeDefined()
  })

  test('are not logged as dropped when they are discarded or replayed', async () => {
    const error = vi.fn()
    const { inbox, calls } = openInbox(memoryInbox(), { ...silent, error })
    for (const key of ['one', 'two']) {
      await inbox.accept(eventOf(key))
      await letDie(calls, key)
    }
    await until(async () => (await inbox.stats()).deadLetters === 2)
    expect(await inbox.deadLetters.discard('one')).toBe(true)
    expect(await inbox.deadLetters.replay('two')).toBe(true)
    expect(error).not.toHaveBeenCalled()
  })
})
