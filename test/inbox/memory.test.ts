import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { memoryInbox } from '../../src/inbox/memory.ts'
import { type Call, type Calls, eventOf, startInbox, until } from '../../src/testing/contract/handling.ts'

const withCode = (code: string) => expect.objectContaining({ name: 'WebhookError', code })

/** Finishes the next attempt with no attempts left. */
async function bury(calls: Calls, key: string): Promise<Call> {
  const call = await calls.next()
  call.finish({ status: 'dead', completed: [], failures: [{ handler: 'h', message: `Error: ${key}` }] })
  return call
}

describe('a memory inbox that is full', () => {
  test('refuses an event and accepts it later, when there is room', async () => {
    const inbox = memoryInbox({ maxWaiting: 2 })
    const calls = await startInbox(inbox)
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

  test('still says of what it holds that it is a duplicate', async () => {
    const inbox = memoryInbox({ maxWaiting: 1 })
    await startInbox(inbox)
    await inbox.accept(eventOf('1'))
    expect(await inbox.accept(eventOf('2'))).toBe('overloaded')
    expect(await inbox.accept(eventOf('1'))).toBe('duplicate')
  })

  test('counts those that wait for a retry', async () => {
    const inbox = memoryInbox({ maxWaiting: 1 })
    const calls = await startInbox(inbox)
    await inbox.accept(eventOf('1'))
    const call = await calls.next()
    call.finish({ status: 'retry', delayMs: 60_000, completed: [] })
    await nextTurn()
    expect(await inbox.accept(eventOf('2'))).toBe('overloaded')
  })

  test('keeps a dead letter that it has no room to replay', async () => {
    const inbox = memoryInbox({ maxWaiting: 1 })
    const calls = await startInbox(inbox)
    await inbox.accept(eventOf('dead'))
    await bury(calls, 'dead')
    await until(async () => (await inbox.stats()).deadLetters === 1)
    await inbox.accept(eventOf('waiting'))
    expect(() => inbox.deadLetters.replay('dead')).toThrow(withCode('overloaded'))
    expect(await inbox.deadLetters.get('dead')).toBeDefined()
  })
})

describe('the concurrency of a memory inbox', () => {
  test('is 16 unless it is told otherwise', async () => {
    const inbox = memoryInbox()
    await startInbox(inbox)
    for (let i = 0; i < 20; i++) await inbox.accept(eventOf(`event-${i}`))
    await nextTurn()
    expect(inbox.stats()).toMatchObject({ running: 16, waiting: 4 })
  })

  test('can be 1', async () => {
    const inbox = memoryInbox({ concurrency: 1 })
    const calls = await startInbox(inbox)
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
  test('are the newest; one that is dropped is logged without its payload', async () => {
    const inbox = memoryInbox({ maxDeadLetters: 2 })
    const error = vi.fn()
    const calls = await startInbox(inbox, { debug() {}, info() {}, warn() {}, error })
    for (const key of ['1', '2', '3']) {
      await inbox.accept(eventOf(key))
      await bury(calls, key)
    }
    await until(async () => inbox.deadLetters.get('3') !== undefined)
    expect((await inbox.deadLetters.list()).map(({ key }) => key)).toEqual(['3', '2'])
    expect(error.mock.calls).toEqual([[{ key: '1' }, 'a dead letter was dropped to make room for a newer one']])
  })

  test('are not dropped and not reordered by being read', async () => {
    const inbox = memoryInbox({ maxDeadLetters: 2 })
    const calls = await startInbox(inbox)
    for (const key of ['1', '2', '3']) {
      await inbox.accept(eventOf(key))
      await bury(calls, key)
      await nextTurn()
      await inbox.deadLetters.get('1')
    }
    expect((await inbox.deadLetters.list()).map(({ key }) => key)).toEqual(['3', '2'])
  })

  test('are lost from the list only once the replay has begun, and reported when closing cuts it short', async () => {
    const inbox = memoryInbox()
    const calls = await startInbox(inbox)
    await inbox.accept(eventOf('1'))
    await bury(calls, '1')
    await until(async () => (await inbox.stats()).deadLetters === 1)
    await inbox.deadLetters.replay('1')
    await calls.next()
    const { unfinished } = await inbox.close({ timeoutMs: 1 })
    expect(unfinished.map(({ event, state }) => [event.key, state])).toEqual([['1', 'running']])
  })

  test('can be read, not replayed, once the inbox is closed', async () => {
    const inbox = memoryInbox()
    const calls = await startInbox(inbox)
    await inbox.accept(eventOf('1'))
    await bury(calls, '1')
    await inbox.close()
    expect(() => inbox.deadLetters.replay('1')).toThrow(withCode('closing'))
    expect(await inbox.deadLetters.get('1')).toMatchObject({ attempts: 1, failures: [{ message: 'Error: 1' }] })
  })
})

describe('closing a memory inbox', () => {
  /** An inbox with an event that runs, one that waits behind it and one that waits for its retry. */
  async function inboxInUse(retryMs: number) {
    const inbox = memoryInbox()
    const calls = await startInbox(inbox)
    await inbox.accept(eventOf('running', 'media'))
    await inbox.accept(eventOf('waiting', 'media'))
    await inbox.accept(eventOf('retrying'))
    const running = await calls.next()
    const retrying = await calls.next()
    retrying.finish({ status: 'retry', delayMs: retryMs, completed: [] })
    return { inbox, calls, running }
  }

  test('finishes what waits for its turn and for its retry', async () => {
    const { inbox, calls, running } = await inboxInUse(5)
    const closed = inbox.close()
    running.finish()
    const left = [await calls.next(), await calls.next()]
    expect(left.map(({ event }) => event.key).toSorted()).toEqual(['retrying', 'waiting'])
    for (const call of left) call.finish()
    expect(await closed).toEqual({ unfinished: [] })
  })

  test('reports what was waiting, running and retrying when its time is up, and begins none of it after', async () => {
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

  test('waits for as long as it takes when told so', async () => {
    const inbox = memoryInbox()
    const calls = await startInbox(inbox)
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
  test('serves one receiver: a second start is refused', async () => {
    const inbox = memoryInbox()
    await startInbox(inbox)
    await expect(startInbox(inbox)).rejects.toThrow(withCode('invalid_option'))
  })

  test('takes nothing before it is started', () => {
    expect(() => memoryInbox().accept(eventOf('1'))).toThrow(withCode('unavailable'))
  })

  test('keeps the runtime alive until the end of an event, its retries included', async () => {
    const inbox = memoryInbox()
    const calls = await startInbox(inbox)
    let over = false
    await inbox.accept(eventOf('1'), { waitUntil: (ended) => void ended.then(() => (over = true)) })
    const first = await calls.next()
    first.finish({ status: 'retry', delayMs: 5, completed: [] })
    const second = await calls.next()
    expect(over).toBe(false)
    second.finish()
    await inbox.close()
    expect(over).toBe(true)
  })

  test('does not keep the runtime alive for a duplicate of what was handled', async () => {
    const inbox = memoryInbox()
    const calls = await startInbox(inbox)
    await inbox.accept(eventOf('1'))
    const first = await calls.next()
    first.finish()
    await nextTurn()
    const promises: Promise<unknown>[] = []
    await inbox.accept(eventOf('1'), { waitUntil: (ended) => void promises.push(ended) })
    await Promise.all(promises)
  })

  test('loses no event to a waitUntil that throws', async () => {
    const inbox = memoryInbox()
    const calls = await startInbox(inbox)
    const accept = async (waitUntil?: () => never) => inbox.accept(eventOf('1'), { waitUntil })
    const throws = () => {
      throw new Error('an illegal invocation')
    }
    const first = await accept(throws).catch(() => 'refused')
    // Either it was refused, and is accepted when it comes again, or it was accepted: somebody handles it.
    expect(await accept()).toBe(first === 'refused' ? 'accepted' : 'duplicate')
    expect((await calls.next()).event.key).toBe('1')
  })

  test.each(['leaseMs', 'concurrency', 'maxWaiting', 'maxDeadLetters'])('refuses 0 for %s', (option) => {
    expect(() => memoryInbox({ [option]: 0 })).toThrow(withCode('invalid_option'))
  })
})
