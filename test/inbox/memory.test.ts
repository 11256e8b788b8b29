import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { lruStore } from '../../src/idempotency/lru.ts'
import { memoryInbox } from '../../src/inbox/memory.ts'
import { type Call, type Calls, eventOf, openInbox, until } from '../../src/testing/contract/handling.ts'

const withCode = (code: string) => expect.objectContaining({ name: 'WebhookError', code })

/** Finishes the next attempt with no attempts left. */
async function bury(calls: Calls, key: string): Promise<Call> {
  const call = await calls.next()
  call.finish({ status: 'dead', completed: [], failures: [{ handler: 'h', message: `Error: ${key}` }] })
  return call
}

describe('a memory inbox that is full', () => {
  test('does not accept an event, and accepts it later when there is room', async () => {
    const { inbox, calls } = openInbox(memoryInbox({ maxWaiting: 2 }))
    expect(await inbox.accept(eventOf('running', 'media'))).toBe('accepted')
    const running = await calls.next()
    expect(await inbox.accept(eventOf('1', 'media'))).toBe('accepted')
    expect(await inbox.accept(eventOf('2', 'media'))).toBe('accepted')
    expect(await inbox.accept(eventOf('3', 'media'))).toBe('overloaded')
    expect(await inbox.accept(eventOf('3', 'media'))).toBe('overloaded')
    running.finish()
    await calls.next()
    expect(await inbox.accept(eventOf('3', 'media'))).toBe('accepted')
  })

  test('still calls an event that it holds a duplicate', async () => {
    const { inbox } = openInbox(memoryInbox({ maxWaiting: 1 }))
    await inbox.accept(eventOf('1'))
    expect(await inbox.accept(eventOf('2'))).toBe('overloaded')
    expect(await inbox.accept(eventOf('1'))).toBe('duplicate')
  })

  test('counts the events that wait for a retry', async () => {
    const { inbox, calls } = openInbox(memoryInbox({ maxWaiting: 1 }))
    await inbox.accept(eventOf('1'))
    const call = await calls.next()
    call.finish({ status: 'retry', delayMs: 60_000, completed: [], failures: [] })
    await nextTurn()
    expect(await inbox.accept(eventOf('2'))).toBe('overloaded')
  })

  test('keeps a dead letter that it has no room to replay', async () => {
    const { inbox, calls } = openInbox(memoryInbox({ maxWaiting: 1 }))
    await inbox.accept(eventOf('dead'))
    await bury(calls, 'dead')
    await until(async () => (await inbox.stats()).deadLetters === 1)
    await inbox.accept(eventOf('waiting'))
    expect(() => inbox.deadLetters.replay('dead')).toThrow(withCode('overloaded'))
    expect(await inbox.deadLetters.get('dead')).toBeDefined()
  })
})

describe('the concurrency of a memory inbox', () => {
  test('is 16 by default', async () => {
    const { inbox } = openInbox(memoryInbox())
    for (let i = 0; i < 20; i++) await inbox.accept(eventOf(`event-${i}`))
    await nextTurn()
    expect(inbox.stats()).toMatchObject({ running: 16, waiting: 4 })
  })

  test('can be 1', async () => {
    const { inbox, calls } = openInbox(memoryInbox({ concurrency: 1 }))
    for (const key of ['1', '2', '3']) await inbox.accept(eventOf(key))
    for (const key of ['1', '2', '3']) {
      const call = await calls.next()
      expect(call.event.key).toBe(key)
      expect(inbox.stats()).toMatchObject({ running: 1 })
      call.finish()
    }
  })
})

describe('the dead letters of a memory inbox', () => {
  test('are the newest, and a dropped one is logged without its payload', async () => {
    const error = vi.fn()
    const logger = { debug() {}, info() {}, warn() {}, error }
    const { inbox, calls } = openInbox(memoryInbox({ maxDeadLetters: 2 }), logger)
    for (const key of ['1', '2', '3']) {
      await inbox.accept(eventOf(key))
      await bury(calls, key)
    }
    await until(async () => inbox.deadLetters.get('3') !== undefined)
    expect((await inbox.deadLetters.list()).map(({ key }) => key)).toEqual(['3', '2'])
    expect(error.mock.calls).toEqual([[{ key: '1' }, 'a dead letter was dropped to make room for a newer one']])
  })

  test('stay in the same order when they are read', async () => {
    const { inbox, calls } = openInbox(memoryInbox({ maxDeadLetters: 2 }))
    for (const key of ['1', '2', '3']) {
      await inbox.accept(eventOf(key))
      await bury(calls, key)
      await nextTurn()
      await inbox.deadLetters.get('1')
    }
    expect((await inbox.deadLetters.list()).map(({ key }) => key)).toEqual(['3', '2'])
  })

  test('leave the list when their replay starts, and are reported as unfinished when closing cuts it short', async () => {
    const { inbox, calls } = openInbox(memoryInbox())
    await inbox.accept(eventOf('1'))
    await bury(calls, '1')
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
      await bury(calls, key)
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
    await bury(calls, '1')
    await inbox.close()
    expect(() => inbox.deadLetters.replay('1')).toThrow(withCode('closing'))
    expect(await inbox.deadLetters.get('1')).toMatchObject({ attempts: 1, failures: [{ message: 'Error: 1' }] })
  })
})

describe('closing a memory inbox', () => {
  /** Opens an inbox with a running event, one that waits behind it and one that waits for its retry. */
  async function inboxInUse(retryMs: number) {
    const { inbox, calls } = openInbox(memoryInbox())
    await inbox.accept(eventOf('running', 'media'))
    await inbox.accept(eventOf('waiting', 'media'))
    await inbox.accept(eventOf('retrying'))
    const running = await calls.next()
    const retrying = await calls.next()
    retrying.finish({ status: 'retry', delayMs: retryMs, completed: [], failures: [] })
    return { inbox, calls, running }
  }

  test('finishes the events that wait for their turn or their retry', async () => {
    const { inbox, calls, running } = await inboxInUse(5)
    const closed = inbox.close()
    running.finish()
    const left = [await calls.next(), await calls.next()]
    expect(left.map(({ event }) => event.key).toSorted()).toEqual(['retrying', 'waiting'])
    for (const call of left) call.finish()
    expect(await closed).toEqual({ unfinished: [] })
  })

  test('reports waiting, running and retrying events when its time is up, and starts none of them afterwards', async () => {
    const { inbox, calls, running } = await inboxInUse(30)
    const { unfinished } = await inbox.close({ timeoutMs: 1 })
    const states = unfinished.map(({ event, state }) => [event.key, state])
    expect(states.toSorted()).toEqual([
      ['retrying', 'retrying'],
      ['running', 'running'],
      ['waiting', 'waiting'],
    ])
    const another = calls.next()
    running.finish()
    expect(await Promise.race([another, new Promise((resolve) => setTimeout(resolve, 50, 'nothing'))])).toBe('nothing')
  })

  test('waits without a limit where timeoutMs is Infinity', async () => {
    const { inbox, calls } = openInbox(memoryInbox())
    await inbox.accept(eventOf('1'))
    const call = await calls.next()
    const closed = inbox.close({ timeoutMs: Number.POSITIVE_INFINITY })
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(call.attempt.aborted).toBe(false)
    call.finish()
    expect(await closed).toEqual({ unfinished: [] })
  })
})

describe('a memory inbox', () => {
  test('keeps the runtime alive until an event has ended, its retries included', async () => {
    const { inbox, calls } = openInbox(memoryInbox())
    let over = false
    await inbox.accept(eventOf('1'), { waitUntil: (ended) => void ended.then(() => (over = true)) })
    const first = await calls.next()
    first.finish({ status: 'retry', delayMs: 5, completed: [], failures: [] })
    const second = await calls.next()
    expect(over).toBe(false)
    second.finish()
    await inbox.close()
    expect(over).toBe(true)
  })

  test('does not keep the runtime alive for a duplicate of a handled event', async () => {
    const { inbox, calls } = openInbox(memoryInbox())
    await inbox.accept(eventOf('1'))
    const first = await calls.next()
    first.finish()
    await nextTurn()
    const promises: Promise<unknown>[] = []
    await inbox.accept(eventOf('1'), { waitUntil: (ended) => void promises.push(ended) })
    await Promise.all(promises)
  })

  test('loses no event to a waitUntil that throws', async () => {
    const { inbox, calls } = openInbox(memoryInbox())
    const accept = async (waitUntil?: () => never) => inbox.accept(eventOf('1'), { waitUntil })
    const throws = () => {
      throw new Error('an illegal invocation')
    }
    const first = await accept(throws).catch(() => 'failed')
    // Either it failed and is accepted when it arrives again, or it was accepted: it is handled in both cases.
    expect(await accept()).toBe(first === 'failed' ? 'accepted' : 'duplicate')
    expect((await calls.next()).event.key).toBe('1')
  })

  test.each(['leaseMs', 'concurrency', 'maxWaiting', 'maxDeadLetters'])('rejects 0 for %s', (option) => {
    expect(() => memoryInbox({ [option]: 0 })).toThrow(withCode('invalid_option'))
  })
})
