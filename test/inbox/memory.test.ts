import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { memoryInbox } from '../../src/inbox/memory.ts'
import { eventOf, openInbox, until } from '../support/inbox.ts'
import { gate, interceptedStore } from './memory/intercepted-store.ts'

const invalid = (message: RegExp) =>
  expect.objectContaining({ name: 'WebhookError', code: 'invalid_option', message: expect.stringMatching(message) })

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

  test('counts the memory that its events take', async () => {
    const { inbox, calls } = openInbox(memoryInbox({ maxWaiting: 1_000 }))
    // 4 MB each, with two bytes for each character. All of them may take 12.2 MB.
    const large = (key: string) => {
      const { event, receivedAt } = eventOf(key)
      return { event: { ...event, payload: { texts: [{ text: 't'.repeat(2_000_000) }] } }, receivedAt }
    }
    for (const key of ['1', '2', '3', '4']) expect(await inbox.accept(large(key))).toBe('accepted')
    expect(await inbox.accept(eventOf('5'))).toBe('overloaded')
    const first = await calls.next()
    first.finish()
    await nextTurn()
    expect(await inbox.accept(eventOf('5'))).toBe('accepted')
  })

  test('counts the events that wait for a retry', async () => {
    const { inbox, calls } = openInbox(memoryInbox({ maxWaiting: 1 }))
    await inbox.accept(eventOf('1'))
    const call = await calls.next()
    call.finish({ status: 'retry', delayMs: 60_000, completed: [], failures: [] })
    await nextTurn()
    expect(await inbox.accept(eventOf('2'))).toBe('overloaded')
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

  test('gives waitUntil a promise that resolves with the end of the event, and none for a duplicate', async () => {
    const { inbox, calls } = openInbox(memoryInbox())
    const waitUntil = vi.fn()
    await inbox.accept(eventOf('one'), { waitUntil })
    await inbox.accept(eventOf('one'), { waitUntil })
    expect(waitUntil).toHaveBeenCalledOnce()
    ;(await calls.next()).finish()
    expect(await waitUntil.mock.calls[0]?.[0]).toBe('handled')
  })

  test('counts an event as running while its end is being recorded', async () => {
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

  test('serves one receiver, and handles events now', () => {
    const definition = memoryInbox()
    expect(definition).toMatchObject({ name: 'memoryInbox', handlesNow: true })
    openInbox(definition)
    expect(() => openInbox(definition)).toThrow(invalid(/^memoryInbox: an inbox serves one receiver/))
  })

  test.each<[string, object, RegExp]>([
    ['an object without the steps of a store as its store', { store: {} }, /^memoryInbox: store/],
    ['null as its store', { store: null }, /^memoryInbox: store/],
    ['no room', { maxWaiting: 0 }, /^memoryInbox: maxWaiting/],
    ['a lease of no time', { leaseMs: 0 }, /^memoryInbox: leaseMs/],
    ['no concurrency', { concurrency: 0 }, /^memoryInbox: concurrency/],
    ['no dead letters', { maxDeadLetters: 0 }, /^memoryInbox: maxDeadLetters/],
    ['more dead letters than a cache can hold', { maxDeadLetters: 10_000_001 }, /^memoryInbox: maxDeadLetters/],
    ['an unknown option', { max: 1 }, /^memoryInbox: there is no option max/],
  ])('cannot have %s', (_, options, message) => {
    expect(() => memoryInbox(options)).toThrow(invalid(message))
  })
})
