import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { defineStore } from '../../src/idempotency/define-store.ts'
import { lruStore } from '../../src/idempotency/lru.ts'
import type { IdempotencyStore } from '../../src/idempotency/store.ts'
import type { Inbox } from '../../src/inbox/inbox.ts'
import { memoryInbox } from '../../src/inbox/memory.ts'
import { createReceiver, unverified } from '../../src/index.ts'
import { makeDelivery, samplePayload } from '../../src/testing/index.ts'
import { answerLost, down, interceptedStore } from '../inbox/memory/intercepted-store.ts'
import { type Calls, eventOf, openInbox } from '../support/inbox.ts'
import { recordingLogger } from '../support/recording-logger.ts'
import { silent } from '../support/silent.ts'
import { suspend } from '../support/suspend.ts'

// The clocks of timers, of leases and of the shared lru store; turns of the event loop stay real.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] }))
afterEach(() => void vi.useRealTimers())

const leaseMs = 3_000
const day = 86_400_000

/** Opens the inbox of one of several processes that share a store. */
function machine(shared?: IdempotencyStore) {
  const { store, ...control } = interceptedStore(shared)
  const warnings: string[] = []
  const warn = (_details: object, message: string) => void warnings.push(message)
  const logger = { ...silent, warn, error: warn }
  return { ...control, ...openInbox(memoryInbox({ store, leaseMs }), logger), warnings }
}

describe('the lease of an event', () => {
  test('lasts as long as its handler runs', async () => {
    const { inbox, calls, shared } = machine()
    const other = machine(shared)
    await inbox.accept(eventOf('one'))
    const call = await calls.next()
    for (let minute = 0; minute < 10; minute++) {
      await vi.advanceTimersByTimeAsync(60_000)
      await expect(async () => other.inbox.accept(eventOf('one'))).rejects.toMatchObject({ code: 'in_progress' })
    }
    expect(call.attempt.aborted).toBe(false)
    call.finish()
    await inbox.close()
    expect(await shared.claim('one', 'b', leaseMs)).toBe('done')
  })

  test('lasts as long as its event waits for its turn or its retry', async () => {
    const { inbox, calls, shared } = machine()
    await inbox.accept(eventOf('running', 'media'))
    await inbox.accept(eventOf('waiting', 'media'))
    await inbox.accept(eventOf('retrying'))
    await calls.next()
    const call = await calls.next()
    call.finish({ status: 'retry', delayMs: 60_000, completed: [], failures: [] })
    await vi.advanceTimersByTimeAsync(50_000)
    expect(inbox.stats()).toMatchObject({ running: 1, waiting: 1, retrying: 1 })
    for (const key of ['running', 'waiting', 'retrying']) {
      expect(await shared.claim(key, 'b', leaseMs)).toBe('in-progress')
    }
  })

  test('is renewed at its own times again after the event loop was blocked, not a third after all the others', async () => {
    const { inbox, count } = machine()
    await inbox.accept(eventOf('one'))
    // The first renewal comes late by that much.
    suspend(leaseMs * 0.3)
    await vi.advanceTimersByTimeAsync(leaseMs / 3)
    expect(count('renew one')).toBe(1)
    await vi.advanceTimersByTimeAsync(leaseMs / 3 - leaseMs * 0.3)
    expect(count('renew one')).toBe(2)
  })

  test('is renewed every third of its time, and no longer once the event is done', async () => {
    const { inbox, calls, count } = machine()
    await inbox.accept(eventOf('one'))
    const call = await calls.next()
    await vi.advanceTimersByTimeAsync(leaseMs * 2)
    expect(count('renew one')).toBe(6)
    call.finish()
    await vi.advanceTimersByTimeAsync(leaseMs * 2)
    expect(count('renew one')).toBe(6)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('is not taken from an answer that a paused process reads too late', async () => {
    const { inbox, intercept, shared } = machine()
    intercept.claim = async (carryOut) => {
      const answer = await carryOut()
      suspend(leaseMs)
      return answer
    }
    await expect(inbox.accept(eventOf('one'))).rejects.toMatchObject({ code: 'unavailable' })
    await vi.waitFor(async () => expect(await shared.claim('one', 'b', leaseMs)).toBe('claimed'))
  })

  test('survives an outage that is over before it runs out', async () => {
    const { inbox, calls, intercept, warnings } = machine()
    await inbox.accept(eventOf('one'))
    const call = await calls.next()
    intercept.renew = down
    await vi.advanceTimersByTimeAsync(leaseMs * 0.7)
    delete intercept.renew
    await vi.advanceTimersByTimeAsync(leaseMs)
    expect(call.attempt.aborted).toBe(false)
    expect(new Set(warnings)).toEqual(new Set(['the idempotency store could not renew a claim']))
  })

  test('is renewed although the store never answers for another event', async () => {
    const { inbox, calls, shared, intercept, count } = machine()
    await inbox.accept(eventOf('stuck'))
    await inbox.accept(eventOf('one'))
    await calls.next()
    intercept.renew = (carryOut, key) => (key === 'stuck' ? new Promise(() => {}) : carryOut())
    await vi.advanceTimersByTimeAsync(leaseMs * 10)
    expect(await shared.claim('one', 'b', leaseMs)).toBe('in-progress')
    // One renewal at a time: the next is sent when a lease has passed without an answer.
    expect(count('renew stuck')).toBeGreaterThan(1)
    expect(count('renew stuck')).toBeLessThanOrEqual(10)
  })
})

describe('a store that never answers', () => {
  test('is asked again to record what was handled', async () => {
    const { inbox, calls, shared, intercept } = machine()
    await inbox.accept(eventOf('one'))
    const call = await calls.next()
    intercept.complete = () => new Promise(() => {})
    call.finish()
    await vi.advanceTimersByTimeAsync(leaseMs)
    delete intercept.complete
    await vi.advanceTimersByTimeAsync(leaseMs * 2)
    expect(await shared.claim('one', 'b', leaseMs)).toBe('done')
  })

  test('blocks no lane and no slot while a claim is being released', async () => {
    const { store, intercept } = interceptedStore()
    const { inbox: opened, calls } = openInbox(memoryInbox({ store, leaseMs, concurrency: 1 }))
    const inbox = opened as Required<Inbox>
    intercept.release = () => new Promise(() => {})
    const failed = inbox.handleNow(eventOf('one', 'media'))
    ;(await calls.next()).finish({ status: 'dead', completed: [], failures: [] })
    await vi.advanceTimersByTimeAsync(leaseMs)
    expect(await failed).toBe('failed')
    const next = inbox.handleNow(eventOf('two', 'media'))
    ;(await calls.next()).finish()
    expect(await next).toBe('handled')
  })
})

describe('an event whose lease was lost', () => {
  /** Cuts a machine off while it handles an event, until another machine takes the event over. */
  async function takeOver() {
    const first = machine()
    await first.inbox.accept(eventOf('one'))
    const call = await first.calls.next()
    first.intercept.renew = down
    await vi.advanceTimersByTimeAsync(leaseMs * 1.5)
    const second = machine(first.shared)
    expect(await second.inbox.accept(eventOf('one'))).toBe('accepted')
    delete first.intercept.renew
    await vi.advanceTimersByTimeAsync(leaseMs / 3)
    return { first, second, call }
  }

  test('has the signal of its handler aborted', async () => {
    const { first, call } = await takeOver()
    expect(call.attempt.aborted).toBe(true)
    expect(call.attempt.signal.reason).toMatchObject({ name: 'WebhookError', code: 'lease_lost' })
    expect(first.warnings).toContain('the lease of the event was lost; another process handles it')
  })

  test('is neither completed nor released when its handler ends', async () => {
    const { first, second, call } = await takeOver()
    call.finish()
    expect(await first.inbox.close()).toEqual({ unfinished: [] })
    expect(first.count('complete one') + first.count('release one')).toBe(0)
    expect(await first.shared.claim('one', 'c', leaseMs)).toBe('in-progress')
    const taken = await second.calls.next()
    taken.finish()
    await second.inbox.close()
    expect(await first.shared.claim('one', 'c', leaseMs)).toBe('done')
  })

  test('does not run again if it waited for its retry', async () => {
    const first = machine()
    await first.inbox.accept(eventOf('one'))
    const call = await first.calls.next()
    call.finish({ status: 'retry', delayMs: 60_000, completed: [], failures: [] })
    first.intercept.renew = async () => false
    await vi.advanceTimersByTimeAsync(leaseMs)
    expect(first.inbox.stats()).toMatchObject({ retrying: 0 })
    await vi.advanceTimersByTimeAsync(120_000)
    expect(first.inbox.stats()).toMatchObject({ waiting: 0, running: 0 })
  })

  test('does not run if it waited for its turn', async () => {
    const { inbox, calls, intercept } = machine()
    await inbox.accept(eventOf('first', 'media'))
    await inbox.accept(eventOf('lost', 'media'))
    await inbox.accept(eventOf('last', 'media'))
    const first = await calls.next()
    intercept.renew = async (carryOut, key) => (key === 'lost' ? false : carryOut())
    await vi.advanceTimersByTimeAsync(leaseMs)
    first.finish()
    expect((await calls.next()).event.key).toBe('last')
  })
})

describe('an event whose lease has ended while its process cannot reach the store', () => {
  /** Cuts a machine off from the store. `reconnect` waits until it has renewed its claims again. */
  function cutOff({ intercept }: ReturnType<typeof machine>) {
    intercept.renew = down
    return async () => {
      delete intercept.renew
      await vi.advanceTimersByTimeAsync(leaseMs / 3)
    }
  }

  /** Returns the next attempt, which has not started yet. */
  async function notYet(calls: Calls) {
    const next = calls.next()
    // It may never come.
    next.catch(() => {})
    expect(await Promise.race([next, nextTurn('not yet')])).toBe('not yet')
    return { next }
  }

  test('has the signal of its handler aborted, before another process can claim it', async () => {
    const first = machine()
    await first.inbox.accept(eventOf('one'))
    const { attempt } = await first.calls.next()
    cutOff(first)
    await vi.advanceTimersByTimeAsync(leaseMs - 1)
    expect(attempt.aborted).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(attempt.signal.reason).toMatchObject({ code: 'lease_lost' })
    expect(await machine(first.shared).inbox.accept(eventOf('one'))).toBe('accepted')
    expect(first.warnings.filter((line) => line.startsWith('a claim expired'))).toHaveLength(1)
  })

  test('counts from the renewal that the store answered last', async () => {
    const first = machine()
    await first.inbox.accept(eventOf('one'))
    const { attempt } = await first.calls.next()
    await vi.advanceTimersByTimeAsync(leaseMs / 3)
    cutOff(first)
    await vi.advanceTimersByTimeAsync(leaseMs - 1)
    expect(attempt.aborted).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(attempt.aborted).toBe(true)
  })

  test('has the signal aborted in time although the store never answers', async () => {
    const first = machine()
    await first.inbox.accept(eventOf('one'))
    const { attempt } = await first.calls.next()
    first.intercept.renew = () => new Promise(() => {})
    await vi.advanceTimersByTimeAsync(leaseMs)
    expect(attempt.aborted).toBe(true)
  })

  test('runs again here, and the attempt does not count, when no other process has claimed it', async () => {
    const first = machine()
    await first.inbox.accept(eventOf('one'))
    const stopped = await first.calls.next()
    const reconnect = cutOff(first)
    await vi.advanceTimersByTimeAsync(leaseMs * 2)
    stopped.finish({ status: 'retry', delayMs: 0, completed: ['a'], failures: [] })
    await vi.advanceTimersByTimeAsync(leaseMs)
    const { next } = await notYet(first.calls)
    await reconnect()
    const { attempt, finish } = await next
    expect(attempt).toMatchObject({ number: 1, completed: ['a'], aborted: false })
    finish()
    await first.inbox.close()
    expect(await first.shared.claim('one', 'b', leaseMs)).toBe('done')
  })

  test('does not run again here when another process has claimed it', async () => {
    const first = machine()
    await first.inbox.accept(eventOf('one'))
    const stopped = await first.calls.next()
    const reconnect = cutOff(first)
    await vi.advanceTimersByTimeAsync(leaseMs)
    await machine(first.shared).inbox.accept(eventOf('one'))
    stopped.finish({ status: 'retry', delayMs: 0, completed: [], failures: [] })
    await reconnect()
    expect(await first.inbox.close()).toEqual({ unfinished: [] })
    await notYet(first.calls)
  })

  test.each([
    ['its turn', 'media'],
    ['its retry', 'another'],
  ])('is not started here if it waited for %s, until the store answers', async (_, mediaId) => {
    const first = machine()
    await first.inbox.accept(eventOf('running', 'media'))
    const running = await first.calls.next()
    await first.inbox.accept(eventOf('one', mediaId))
    const failed = { status: 'retry', delayMs: leaseMs, completed: [], failures: [] } as const
    if (mediaId === 'another') (await first.calls.next()).finish(failed)
    const reconnect = cutOff(first)
    await vi.advanceTimersByTimeAsync(leaseMs)
    running.finish()
    await vi.advanceTimersByTimeAsync(leaseMs)
    const { next } = await notYet(first.calls)
    await reconnect()
    expect((await next).event.key).toBe('one')
  })

  test('is reported when the inbox closes before the store is back', async () => {
    const first = machine()
    await first.inbox.accept(eventOf('one'))
    const stopped = await first.calls.next()
    cutOff(first)
    await vi.advanceTimersByTimeAsync(leaseMs)
    stopped.finish({ status: 'retry', delayMs: 0, completed: [], failures: [] })
    const closed = first.inbox.close({ timeoutMs: 100 })
    await vi.advanceTimersByTimeAsync(100)
    expect((await closed).unfinished.map(({ event }) => event.key)).toEqual(['one'])
  })

  test('is aborted in time although the renewals come late', async () => {
    const first = machine()
    await first.inbox.accept(eventOf('earlier'))
    await first.calls.next()
    await vi.advanceTimersByTimeAsync(10)
    await first.inbox.accept(eventOf('one'))
    const { attempt } = await first.calls.next()
    cutOff(first)
    await vi.advanceTimersByTimeAsync(leaseMs * 0.8)
    suspend(100)
    await vi.advanceTimersByTimeAsync(leaseMs * 0.2 - 101)
    expect(attempt.aborted).toBe(false)
    const onAbort = vi.fn()
    attempt.signal.addEventListener('abort', onAbort)
    await vi.advanceTimersByTimeAsync(1)
    expect(onAbort).toHaveBeenCalledOnce()
  })

  test('counts as aborted in a process that was suspended, before any timer fires', async () => {
    const { inbox, calls, warnings } = machine()
    await inbox.accept(eventOf('one'))
    const { attempt } = await calls.next()
    suspend(leaseMs - 1)
    expect(attempt.aborted).toBe(false)
    suspend(leaseMs)
    expect(attempt.aborted).toBe(true)
    expect(attempt.aborted).toBe(true)
    expect(attempt.signal.reason).toMatchObject({ code: 'lease_lost' })
    expect(warnings.filter((line) => line.startsWith('a claim expired'))).toHaveLength(1)
  })

  test('is aborted at the first timer of a process that was suspended, and runs again if it still has the lease', async () => {
    const { inbox, calls } = machine()
    await inbox.accept(eventOf('one'))
    const stopped = await calls.next()
    const { signal } = stopped.attempt
    suspend(leaseMs)
    await vi.advanceTimersByTimeAsync(leaseMs / 3)
    expect(signal.reason).toMatchObject({ code: 'lease_lost' })
    stopped.finish({ status: 'retry', delayMs: 0, completed: [], failures: [] })
    const { attempt } = await calls.next()
    await vi.advanceTimersByTimeAsync(leaseMs * 2)
    expect(attempt).toMatchObject({ number: 1, aborted: false })
  })

  test('is aborted at each outage', async () => {
    const first = machine()
    await first.inbox.accept(eventOf('one'))
    for (let outage = 0; outage < 2; outage++) {
      const { attempt, finish } = await first.calls.next()
      const reconnect = cutOff(first)
      await vi.advanceTimersByTimeAsync(leaseMs)
      expect(attempt.signal.aborted).toBe(true)
      finish({ status: 'retry', delayMs: 0, completed: [], failures: [] })
      await reconnect()
    }
  })
})

describe('an event that the store could not record as done', () => {
  test('stays a duplicate, and is recorded at a heartbeat after the outage, never released', async () => {
    const { inbox, calls, intercept, shared, count } = machine()
    await inbox.accept(eventOf('one'))
    intercept.complete = down
    const call = await calls.next()
    call.finish()
    await vi.advanceTimersByTimeAsync(leaseMs * 3)
    expect(count('complete one')).toBe(10)
    expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
    delete intercept.complete
    await vi.advanceTimersByTimeAsync(leaseMs / 3)
    expect(await shared.claim('one', 'b', leaseMs)).toBe('done')
    expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
    expect(count('release one')).toBe(0)
    expect(inbox.stats()).toEqual({ waiting: 0, running: 0, retrying: 0, deadLetters: 0 })
  })

  test('is left to the heartbeat by the deliveries that arrive meanwhile', async () => {
    const { inbox, calls, intercept, count } = machine()
    await vi.advanceTimersByTimeAsync(leaseMs)
    await inbox.accept(eventOf('one'))
    intercept.complete = () => new Promise(() => {})
    ;(await calls.next()).finish()
    await nextTurn()
    await inbox.accept(eventOf('two'))
    expect(count('complete one')).toBe(1)
  })

  test('is recorded later if the store throws instead of rejecting', async () => {
    const warn = vi.fn()
    const shared = lruStore({ now: Date.now })
    let isDown = true
    const complete: IdempotencyStore['complete'] = (key, owner) => {
      if (isDown) throw new Error('connection refused')
      return shared.complete(key, owner)
    }
    const store = defineStore({ ...shared, complete })
    const logger = { ...silent, warn }
    const { inbox, calls } = openInbox(memoryInbox({ store, leaseMs }), logger)
    await inbox.accept(eventOf('one'))
    ;(await calls.next()).finish()
    await vi.advanceTimersByTimeAsync(1)
    const err = expect.objectContaining({ message: 'connection refused' })
    expect(warn.mock.calls).toEqual([[{ key: 'one', err }, 'the idempotency store could not complete a claim']])
    expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
    isDown = false
    await vi.advanceTimersByTimeAsync(leaseMs / 3)
    expect(await shared.claim('one', 'b', leaseMs)).toBe('done')
    expect(vi.getTimerCount()).toBe(0)
  })

  test('is not replayed as a dead letter before it is recorded', async () => {
    const { inbox, calls, intercept } = machine()
    await inbox.accept(eventOf('one'))
    intercept.complete = down
    ;(await calls.next()).finish({ status: 'dead', completed: [], failures: [] })
    await vi.advanceTimersByTimeAsync(leaseMs)
    await expect((async () => inbox.deadLetters.replay('one'))()).rejects.toMatchObject({ code: 'in_progress' })
    delete intercept.complete
    await vi.advanceTimersByTimeAsync(leaseMs / 3)
    expect(await inbox.deadLetters.replay('one')).toBe(true)
    ;(await calls.next()).finish()
    expect(await inbox.close()).toEqual({ unfinished: [] })
  })

  test('is recorded again, without a warning of a lost lease, when only the answer was lost', async () => {
    const { inbox, calls, intercept, warnings } = machine()
    await inbox.accept(eventOf('one'))
    intercept.complete = answerLost
    const call = await calls.next()
    call.finish()
    await vi.advanceTimersByTimeAsync(1)
    delete intercept.complete
    await vi.advanceTimersByTimeAsync(leaseMs / 3)
    expect(await inbox.close()).toEqual({ unfinished: [] })
    expect(warnings).toEqual(['the idempotency store could not complete a claim'])
  })

  test('holds up closing until it is recorded, and is reported as unfinished then, with its key in one line', async () => {
    const { inbox, calls, intercept, warnings } = machine()
    await inbox.accept(eventOf('one'))
    intercept.complete = down
    const call = await calls.next()
    call.finish()
    const closed = inbox.close({ timeoutMs: 10_000 })
    await vi.advanceTimersByTimeAsync(10_000)
    expect((await closed).unfinished.map(({ event, state }) => [event.key, state])).toEqual([['one', 'running']])
    expect(warnings.filter((line) => line.startsWith('the inbox closed'))).toHaveLength(1)
    expect(vi.getTimerCount()).toBe(0)
  })
})

test('an outage of the store writes a line a second of each kind, however many deliveries come', async () => {
  const { store, intercept } = interceptedStore()
  const { logger, lines } = recordingLogger()
  const receiver = createReceiver({ verify: unverified(), inbox: memoryInbox({ store, leaseMs }), logger })
  receiver.on('encoding.finished', () => {})
  const deliver = async (mediaId: string) =>
    receiver.receive(await makeDelivery(samplePayload('encoding.finished', { media_id: mediaId })))
  for (const method of ['claim', 'renew', 'complete', 'release'] as const) intercept[method] = down
  for (let i = 0; i < 500; i++) expect((await deliver(`${i}`)).status).toBe(503)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(lines.map(({ message, details }) => [message.slice(0, 36), details['count']])).toEqual([
    ['the idempotency store could not rele', undefined],
    ['delivery rejected: the idempotency s', undefined],
    ['the idempotency store could not rele', 499],
    ['499 more deliveries were rejected wi', 499],
  ])
})

test.each([0, 1])(
  'a lease lost while strict order waits for a retry lets the %i later events of its media item go on',
  async (waiting) => {
    const { store, intercept } = interceptedStore()
    const handled: string[] = []
    const receiver = createReceiver({
      verify: unverified(),
      inbox: memoryInbox({ store: defineStore({ ...store, isLocal: true }), leaseMs }),
      logger: silent,
      order: 'strict',
      // So long that full jitter does not make the retry due during the test.
      retry: { attempts: 2, baseMs: day, maxMs: day },
      eventKey: ({ title = '' }) => title,
    })
    receiver.on('encoding.finished', ({ key }) => {
      handled.push(key)
      if (key === 'lost') throw new Error('no')
    })
    const send = async (title: string) =>
      receiver.receive(await makeDelivery(samplePayload('encoding.finished', { title })))
    await send('lost')
    if (waiting === 1) await send('behind')
    await vi.waitFor(() => expect(receiver.inbox.stats()).toMatchObject({ retrying: 1 }))
    intercept.renew = async (carryOut, key) => (key === 'lost' ? false : carryOut())
    await vi.advanceTimersByTimeAsync(leaseMs)
    if (waiting === 0) await send('behind')
    await vi.waitFor(() => expect(handled).toEqual(['lost', 'behind']))
    await receiver.close()
  },
)
