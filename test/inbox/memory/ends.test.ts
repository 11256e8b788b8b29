import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { lruStore } from '../../../src/idempotency/lru.ts'
import type { ClaimsOptions, IdempotencyStore } from '../../../src/idempotency/store.ts'
import type { Inbox } from '../../../src/inbox/inbox.ts'
import { type MemoryInboxOptions, memoryInbox } from '../../../src/inbox/memory.ts'
import { eventOf, openInbox, until } from '../../../src/testing/contract/handling.ts'
import { gate, interceptedStore } from './intercepted-store.ts'

/** Opens an inbox, with what its logger gets and with the means to take a lease from it. */
function subject(options: MemoryInboxOptions = {}) {
  const shared = lruStore(options.store === undefined ? {} : { max: 1 })
  let claimsOptions: ClaimsOptions | undefined
  const store: IdempotencyStore = Object.defineProperty({ ...shared }, 'claims', {
    value(given: ClaimsOptions) {
      claimsOptions = given
      return (options.store ?? shared).claims(given)
    },
  }) as IdempotencyStore
  const [warn, error] = [vi.fn(), vi.fn()]
  const { inbox, calls } = openInbox(memoryInbox({ ...options, store }), { debug() {}, info() {}, warn, error })
  return { inbox: inbox as Required<Inbox>, calls, warn, error, lose: (key: string) => claimsOptions?.onLost(key) }
}

const invalid = (message: RegExp) =>
  expect.objectContaining({ code: 'invalid_option', message: expect.stringMatching(message) })

test.each<[string, object, RegExp]>([
  ['a store that is none', { store: {} }, /^memoryInbox: store/],
  ['null as its store', { store: null }, /^memoryInbox: store/],
  ['no room', { maxWaiting: 0 }, /^memoryInbox: maxWaiting/],
  ['a lease of no time', { leaseMs: 0 }, /^memoryInbox: leaseMs/],
  ['no concurrency', { concurrency: 0 }, /^memoryInbox: concurrency/],
  ['no dead letters', { maxDeadLetters: 0 }, /^memoryInbox: maxDeadLetters/],
  ['more dead letters than a cache can hold', { maxDeadLetters: 10_000_001 }, /^memoryInbox: maxDeadLetters/],
  ['an option that there is not', { max: 1 }, /^memoryInbox: there is no option max/],
])('a memory inbox cannot have %s', (_, options, message) => {
  expect(() => memoryInbox(options)).toThrow(invalid(message))
})

test('a memory inbox serves one receiver, and handles events now', () => {
  const definition = memoryInbox()
  expect(definition).toMatchObject({ name: 'memoryInbox', handlesNow: true })
  openInbox(definition)
  expect(() => openInbox(definition)).toThrow(invalid(/^memoryInbox: an inbox serves one receiver/))
})

describe('a lease that is lost', () => {
  test('ends the event with a warning, and answers that another process has it', async () => {
    const { inbox, calls, warn, lose } = subject()
    const answer = inbox.handleNow(eventOf('one'))
    const call = await calls.next()
    lose('one')
    expect(await answer).toBe('in-progress')
    expect(call.attempt.aborted).toBe(true)
    expect(warn.mock.calls).toEqual([[{ key: 'one' }, expect.stringContaining('another process handles it')]])
    expect(await inbox.stats()).toMatchObject({ running: 0 })
  })

  test('changes nothing where the event has ended', async () => {
    const { inbox, calls, warn, lose } = subject()
    await inbox.accept(eventOf('one'))
    ;(await calls.next()).finish()
    await until(async () => (await inbox.stats()).running === 0)
    lose('one')
    expect(warn).not.toHaveBeenCalled()
  })
})

describe('an event that closing cuts off', () => {
  test('is logged with its key, type, media and state', async () => {
    const { inbox, calls, error } = subject()
    const { event } = eventOf('one', 'media')
    await inbox.accept(eventOf('one', 'media'))
    await inbox.accept(eventOf('two', 'media'))
    await calls.next()
    await inbox.close({ timeoutMs: 1 })
    const { type, mediaId } = event
    const message = 'the inbox closed before the event was handled'
    expect(error.mock.calls).toEqual([
      [{ key: 'one', type, mediaId, state: 'running' }, message],
      [{ key: 'two', type, mediaId, state: 'waiting' }, message],
    ])
  })
})

describe('an event whose end is being recorded', () => {
  test('counts as running', async () => {
    const { store, intercept } = interceptedStore()
    const { inbox, calls } = openInbox(memoryInbox({ store }))
    const { open, interceptor } = gate()
    intercept.complete = interceptor
    await inbox.accept(eventOf('one'))
    ;(await calls.next()).finish()
    await nextTurn()
    expect(inbox.stats()).toEqual({ waiting: 0, running: 1, retrying: 0, deadLetters: 0 })
    open()
    await until(async () => (await inbox.stats()).running === 0)
  })
})

describe('a duplicate that arrives while the claim is pending', () => {
  test.each(['in-progress', 'done'] as const)('is answered as the first one when the answer is %s', async (answer) => {
    const { store, intercept } = interceptedStore()
    const { inbox } = openInbox(memoryInbox({ store }))
    const { open, interceptor } = gate()
    intercept.claim = (_carryOut, key) => interceptor(async () => answer, key)
    const answers = [inbox.accept(eventOf('one')), inbox.accept(eventOf('one'))]
    const settled = Promise.allSettled(answers)
    open()
    for (const each of await settled) {
      if (answer === 'done') expect(each).toEqual({ status: 'fulfilled', value: 'duplicate' })
      else expect(each).toMatchObject({ status: 'rejected', reason: { code: 'in_progress' } })
    }
  })
})

describe('waitUntil', () => {
  test('gets a promise that resolves once the event has ended, and no second one from a duplicate', async () => {
    const { inbox, calls } = subject()
    const waitUntil = vi.fn()
    await inbox.accept(eventOf('one'), { waitUntil })
    await inbox.accept(eventOf('one'), { waitUntil })
    expect(waitUntil).toHaveBeenCalledOnce()
    ;(await calls.next()).finish()
    expect(await waitUntil.mock.calls[0]?.[0]).toBe('handled')
  })
})

describe('the attempts of handleNow', () => {
  test('are counted until the event is handled, and from 1 when it is sent again long after', async () => {
    const { inbox, calls } = subject({ store: lruStore({ max: 1 }) })
    const numbers: number[] = []
    const handle = async (key: string, isHandled: boolean) => {
      const answer = inbox.handleNow(eventOf(key))
      const call = await calls.next()
      if (key === 'one') numbers.push(call.attempt.number)
      call.finish(isHandled ? { status: 'done' } : { status: 'dead', completed: [], failures: [] })
      return answer
    }
    expect(await handle('one', false)).toBe('failed')
    expect(await handle('one', false)).toBe('failed')
    expect(await handle('one', true)).toBe('handled')
    expect(await handle('two', true)).toBe('handled')
    expect(await handle('one', true)).toBe('handled')
    expect(numbers).toEqual([1, 2, 3, 1])
  })
})

test('a dead letter that is discarded or replayed is not logged as dropped', async () => {
  const { inbox, calls, error } = subject()
  for (const key of ['one', 'two']) {
    await inbox.accept(eventOf(key))
    ;(await calls.next()).finish({ status: 'dead', completed: [], failures: [] })
  }
  await until(async () => (await inbox.stats()).deadLetters === 2)
  expect(await inbox.deadLetters.discard('one')).toBe(true)
  expect(await inbox.deadLetters.replay('two')).toBe(true)
  expect(error).not.toHaveBeenCalled()
})
