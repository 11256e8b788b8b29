import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { queueInbox } from '../../../src/inbox/queue.ts'
import { lruStore, PermanentFailure, RetryAfter } from '../../../src/index.ts'
import { openInbox } from '../../support/inbox.ts'
import { block, suspend } from '../../support/suspend.ts'
import { down, gate } from '../memory/intercepted-store.ts'
import { heldHandler, messageOf, type ProcessOptions, remoteProcess } from './queue-process.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const leaseMs = 30_000
const failing = () => {
  throw new Error('no disk')
}

/** Several processes that share a store, each with handlers by name. */
function processes() {
  const store = lruStore({ now: Date.now })
  return (handlers: Record<string, (...args: never[]) => unknown>, options: ProcessOptions = {}) => {
    const process = remoteProcess({ ...options, store })
    for (const [name, handler] of Object.entries(handlers)) {
      process.receiver.on('encoding.finished', handler as () => unknown, { name })
    }
    return process
  }
}

describe('of two consumers', () => {
  test('one handles an event, and the other is told to try again after the lease', async () => {
    const start = processes()
    const { handler, end } = heldHandler()
    const idle = vi.fn()
    const [one, other] = [start({ handler }), start({ handler: idle })]
    const message = await messageOf()
    const handling = one.receiver.handle(message)
    await vi.advanceTimersByTimeAsync(0)
    expect(await other.receiver.handle(message)).toEqual({ status: 'retry', delayMs: leaseMs })
    expect(await one.receiver.handle(message)).toEqual({ status: 'retry', delayMs: leaseMs })
    end()
    expect(await handling).toEqual({ status: 'done' })
    expect(await other.receiver.handle(message)).toEqual({ status: 'done' })
    expect(handler).toHaveBeenCalledOnce()
    expect(idle).not.toHaveBeenCalled()
  })

  test('the one that is cut off keeps its event until its lease runs out, however long it ran', async () => {
    const start = processes()
    const [{ handler }, next] = [heldHandler(), vi.fn()]
    const [one, other] = [start({ handler }, { receiver: { handlerTimeoutMs: 600_000 } }), start({ next })]
    const message = await messageOf()
    void one.receiver.handle(message)
    await vi.advanceTimersByTimeAsync(3 * leaseMs)
    expect((await other.receiver.handle(message)).status).toBe('retry')
    one.intercept.renew = down
    await vi.advanceTimersByTimeAsync(leaseMs + 1)
    expect(await other.receiver.handle(message)).toEqual({ status: 'done' })
    expect(next).toHaveBeenCalledOnce()
  })

  test('the one that loses its lease is aborted, starts no further handler and records nothing', async () => {
    const start = processes()
    const [held, never] = [heldHandler(), vi.fn()]
    const one = start({ a: held.handler, b: never }, { receiver: { handlerTimeoutMs: 600_000 } })
    const other = start({ a: () => {}, b: () => {} })
    const message = await messageOf()
    const handling = one.receiver.handle(message)
    await vi.advanceTimersByTimeAsync(0)
    one.intercept.renew = down
    await vi.advanceTimersByTimeAsync(leaseMs + 1)
    expect(await other.receiver.handle(message)).toEqual({ status: 'done' })
    delete one.intercept.renew
    await vi.advanceTimersByTimeAsync(leaseMs / 3)
    const [[, { signal }]] = held.handler.mock.calls as [[unknown, { signal: AbortSignal }]]
    expect(signal.reason).toMatchObject({ code: 'lease_lost' })
    held.end()
    expect((await handling).status).toBe('retry')
    expect(never).not.toHaveBeenCalled()
    expect(await one.receiver.handle(message)).toEqual({ status: 'done' })
  })
})

describe('a consumer that cannot reach the store', () => {
  test('aborts its handler once the lease has ended, and leaves the rest to the next delivery', async () => {
    const start = processes()
    const [held, never] = [heldHandler(), vi.fn()]
    const one = start({ a: held.handler, b: never }, { receiver: { handlerTimeoutMs: 600_000 } })
    const message = await messageOf()
    const handling = one.receiver.handle(message)
    await vi.advanceTimersByTimeAsync(0)
    one.intercept.renew = down
    const [[, { signal }]] = held.handler.mock.calls as [[unknown, { signal: AbortSignal }]]
    await vi.advanceTimersByTimeAsync(leaseMs - 1)
    expect(signal.aborted).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(signal.reason).toMatchObject({ code: 'lease_lost' })
    held.end()
    expect((await handling).status).toBe('retry')
    expect(never).not.toHaveBeenCalled()
    const [a, b] = [vi.fn(), vi.fn()]
    expect(await start({ a, b }).receiver.handle(message)).toEqual({ status: 'done' })
    expect(a).toHaveBeenCalledOnce()
    expect(b).toHaveBeenCalledOnce()
  })
})

describe('a consumer that was suspended beyond its lease', () => {
  test('starts no handler, and leaves the message to the next delivery', async () => {
    const start = processes()
    const [a, b] = [vi.fn(), vi.fn()]
    const one = start({ a, b })
    const message = await messageOf()
    // Each answer comes within a lease, and the last one after the lease of the event.
    one.intercept.claim = async (carryOut, key) => {
      const claim = await carryOut()
      suspend(key === message.key ? leaseMs / 2 : leaseMs)
      return claim
    }
    expect(await one.receiver.handle(message)).toEqual({ status: 'retry', delayMs: leaseMs })
    expect(a).not.toHaveBeenCalled()
    expect(one.lines).toMatchObject([
      { level: 'warn', details: { key: message.key }, message: expect.stringMatching(/^a claim expired/) },
    ])
    expect(await start({ a, b }).receiver.handle(message)).toEqual({ status: 'done' })
    expect(a).toHaveBeenCalledOnce()
  })

  test('starts no further handler, and records nothing, before any timer fires', async () => {
    const start = processes()
    const [held, never] = [heldHandler(), vi.fn()]
    const one = start({ a: held.handler, b: never })
    const message = await messageOf()
    const handling = one.receiver.handle(message)
    await vi.advanceTimersByTimeAsync(0)
    suspend(leaseMs)
    held.end()
    expect((await handling).status).toBe('retry')
    expect(never).not.toHaveBeenCalled()
    expect(one.calls.filter((call) => call.startsWith('complete'))).toEqual([])
  })

  test('keeps its message, if the keys are in its own memory', async () => {
    vi.useRealTimers()
    const { inbox, calls } = openInbox(queueInbox({ send() {}, store: lruStore(), leaseMs: 60 }))
    const message = await messageOf()
    const handling = inbox.handleMessage?.(message)
    const call = await calls.next()
    block(90)
    expect(await inbox.handleMessage?.(message)).toEqual({ status: 'retry', delayMs: 60 })
    expect(call.attempt.aborted).toBe(false)
    call.finish()
    expect(await handling).toEqual({ status: 'done' })
  })
})

describe('a handler that says what to do', () => {
  const never = () => Promise.reject(new PermanentFailure('there is no film'))
  const failures = [{ handler: 'never', message: 'PermanentFailure: there is no film' }]

  test('has the message delivered again after the time that it gives', async () => {
    const { receiver } = processes()({ busy: () => Promise.reject(new RetryAfter('10 min')) })
    expect(await receiver.handle(await messageOf())).toMatchObject({ status: 'retry', delayMs: 600_000 })
  })

  test('makes the message dead at its first delivery', async () => {
    const { receiver } = processes()({ never, fine: () => {} })
    expect(await receiver.handle(await messageOf())).toMatchObject({ status: 'dead', failures })
  })

  test('runs in each delivery while another handler is retried, since only the queue remembers the message', async () => {
    const b = vi.fn<() => void>(failing)
    const { receiver } = processes()({ never, b })
    const message = await messageOf()
    expect((await receiver.handle(message)).status).toBe('retry')
    b.mockImplementation(() => {})
    expect(await receiver.handle(message, { attempt: 2 })).toMatchObject({ status: 'dead', failures })
  })
})

describe('a handler that has succeeded', () => {
  test('does not run again, in this process or another, when a later one fails', async () => {
    const start = processes()
    const runs: string[] = []
    const handlers = (process: string, b: () => void) => ({
      a: () => void runs.push(`a ${process}`),
      b: () => {
        runs.push(`b ${process}`)
        b()
      },
    })
    const [one, other] = [start(handlers('one', failing)), start(handlers('other', () => {}))]
    const message = await messageOf()
    expect((await one.receiver.handle(message)).status).toBe('retry')
    expect((await one.receiver.handle(message, { attempt: 2 })).status).toBe('retry')
    expect(await other.receiver.handle(message, { attempt: 3 })).toEqual({ status: 'done' })
    expect(runs).toEqual(['a one', 'b one', 'b one', 'b other'])
  })

  test('does not run again when an earlier one failed', async () => {
    const start = processes()
    const b = vi.fn()
    const message = await messageOf()
    expect((await start({ a: failing, b }).receiver.handle(message)).status).toBe('retry')
    expect(await start({ a: () => {}, b }).receiver.handle(message, { attempt: 2 })).toEqual({ status: 'done' })
    expect(b).toHaveBeenCalledOnce()
  })

  test('does not run again when its process is cut off in a later one', async () => {
    const start = processes()
    const [a, { handler: b }] = [vi.fn(), heldHandler()]
    const one = start({ a, b })
    const message = await messageOf()
    void one.receiver.handle(message)
    await vi.advanceTimersByTimeAsync(0)
    expect(b).toHaveBeenCalledOnce()
    one.intercept.renew = down
    await vi.advanceTimersByTimeAsync(leaseMs + 1)
    expect(await start({ a, b: () => {} }).receiver.handle(message, { attempt: 2 })).toEqual({ status: 'done' })
    expect(a).toHaveBeenCalledOnce()
  })

  test('does not run again when the one that failed is no longer registered', async () => {
    const start = processes()
    const a = vi.fn()
    const message = await messageOf()
    expect((await start({ a, b: failing }).receiver.handle(message)).status).toBe('retry')
    expect(await start({ a }).receiver.handle(message, { attempt: 2 })).toEqual({ status: 'done' })
    expect(a).toHaveBeenCalledOnce()
  })

  test('does not run again after the event was dead and is delivered anew', async () => {
    const start = processes()
    const [a, b] = [vi.fn(), vi.fn<() => void>(failing)]
    const { receiver } = start({ a, b }, { receiver: { retry: { attempts: 1 } } })
    const message = await messageOf()
    expect((await receiver.handle(message)).status).toBe('dead')
    b.mockImplementation(() => {})
    expect(await receiver.handle(message)).toEqual({ status: 'done' })
    expect(a).toHaveBeenCalledOnce()
  })

  test('costs the store nothing when it is the only one of its event', async () => {
    const { receiver, calls } = processes()({ a: () => {} })
    const message = await messageOf()
    await receiver.handle(message)
    expect(calls).toEqual([`claim ${message.key}`, `complete ${message.key}`])
  })
})

describe('while the store is unreachable', () => {
  test('a message is tried again after the lease, and nothing runs', async () => {
    const a = vi.fn()
    const { receiver, intercept, lines } = processes()({ a })
    intercept.claim = down
    const message = await messageOf()
    expect(await receiver.handle(message)).toEqual({ status: 'retry', delayMs: leaseMs })
    expect(a).not.toHaveBeenCalled()
    const text = 'the message was not handled; the queue must deliver it again'
    expect(lines).toContainEqual({
      level: 'warn',
      details: { key: message.key, err: expect.objectContaining({ code: 'unavailable' }) },
      message: text,
    })
    delete intercept.claim
    expect(await receiver.handle(message)).toEqual({ status: 'done' })
    expect(a).toHaveBeenCalledOnce()
  })

  test('no claim is left behind, even if one of several comes late', async () => {
    const start = processes()
    const a = vi.fn()
    const handlers = { a, b: () => {} }
    const { receiver, intercept } = start(handlers)
    const { open, interceptor } = gate()
    // The claim of `a` fails, and the one of `b` is answered afterwards.
    intercept.claim = (carryOut, key) => {
      if (!key.startsWith('handler:')) return carryOut()
      return key.startsWith('handler:1:a') ? down(carryOut, key) : interceptor(carryOut, key)
    }
    const message = await messageOf()
    const handling = receiver.handle(message)
    await vi.advanceTimersByTimeAsync(0)
    open()
    expect((await handling).status).toBe('retry')
    delete intercept.claim
    await vi.advanceTimersByTimeAsync(0)
    expect(await start(handlers).receiver.handle(message)).toEqual({ status: 'done' })
  })

  test('an event that was handled is done, once its record has been tried for the time of a lease', async () => {
    const a = vi.fn()
    const { receiver, intercept } = processes()({ a })
    intercept.complete = down
    const message = await messageOf()
    const handling = receiver.handle(message)
    await vi.advanceTimersByTimeAsync(leaseMs)
    expect(await handling).toEqual({ status: 'done' })
    // The record is still tried, so that a duplicate of the message is not handled.
    delete intercept.complete
    await vi.advanceTimersByTimeAsync(leaseMs / 3)
    expect(await receiver.handle(message)).toEqual({ status: 'done' })
    expect(a).toHaveBeenCalledOnce()
  })
})

describe('closing', () => {
  test('waits for the messages that are being handled, and leaves new ones to another consumer', async () => {
    const start = processes()
    const { handler, end } = heldHandler()
    const { receiver } = start({ handler })
    const message = await messageOf()
    const handling = receiver.handle(message)
    await vi.advanceTimersByTimeAsync(0)
    expect(await receiver.inbox.stats()).toEqual({ waiting: 0, running: 1, retrying: 0, deadLetters: 0 })
    let report: unknown
    void receiver.close().then((closed) => {
      report = closed
    })
    await vi.advanceTimersByTimeAsync(9_000)
    expect(report).toBe(undefined)
    const other = await messageOf({ media_id: 'another' })
    expect(await receiver.handle(other)).toEqual({ status: 'retry', delayMs: 0 })
    end()
    expect(await handling).toEqual({ status: 'done' })
    await vi.advanceTimersByTimeAsync(0)
    expect(report).toEqual({ unfinished: [] })
    const next = vi.fn()
    expect(await start({ next }).receiver.handle(other)).toEqual({ status: 'done' })
    expect(next).toHaveBeenCalledOnce()
  })

  test('reports an event that was handled and could not be recorded, with its key in one line', async () => {
    const { receiver, intercept, lines } = processes()({ handler: () => {} })
    intercept.complete = down
    const { key, ...message } = await messageOf()
    void receiver.handle({ key, ...message })
    const closing = receiver.close({ timeoutMs: 100 })
    await vi.advanceTimersByTimeAsync(100)
    expect((await closing).unfinished).toMatchObject([{ event: { key }, state: 'running' }])
    const closed = lines.filter(({ message, details }) => /^the inbox closed/.test(message) && details['key'] === key)
    expect(closed).toHaveLength(1)
  })

  test('aborts what runs too long and reports it; another consumer handles it after the lease', async () => {
    const start = processes()
    const { handler, end } = heldHandler()
    const { receiver } = start({ handler })
    const message = await messageOf()
    const handling = receiver.handle(message)
    await vi.advanceTimersByTimeAsync(0)
    const closing = receiver.close({ timeoutMs: 100 })
    await vi.advanceTimersByTimeAsync(100)
    const { unfinished } = await closing
    expect(unfinished).toMatchObject([{ event: { key: message.key }, state: 'running' }])
    const [[, { signal }]] = handler.mock.calls as [[unknown, { signal: AbortSignal }]]
    expect(signal.reason).toMatchObject({ code: 'closing' })
    end()
    expect((await handling).status).toBe('retry')
    const next = vi.fn()
    const other = start({ handler: next })
    expect((await other.receiver.handle(message)).status).toBe('retry')
    await vi.advanceTimersByTimeAsync(leaseMs)
    expect(await other.receiver.handle(message)).toEqual({ status: 'done' })
    expect(next).toHaveBeenCalledOnce()
  })
})
