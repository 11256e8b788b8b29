import { afterEach, describe, expect, test, vi } from 'vitest'
import type { WebhookError } from '../../../src/errors.ts'
import { defineStore } from '../../../src/idempotency/define-store.ts'
import { lruStore } from '../../../src/idempotency/lru.ts'
import type { IdempotencyStore } from '../../../src/idempotency/store.ts'
import type { Inbox } from '../../../src/inbox/inbox.ts'
import { memoryInbox } from '../../../src/inbox/memory.ts'
import { eventOf, openInbox } from '../../support/inbox.ts'
import { answerLost, down, gate, interceptedStore } from './intercepted-store.ts'

const withCode = (code: string) => expect.objectContaining({ name: 'WebhookError', code })

/** Opens an inbox over a store that is not in its process. */
function machine(shared?: IdempotencyStore) {
  const { store, ...control } = interceptedStore(shared)
  return { ...control, ...openInbox(memoryInbox({ store })) }
}

describe('while the claim of an event is pending', () => {
  test('a second delivery waits for the same answer', async () => {
    const { inbox, intercept, count } = machine()
    const { open, interceptor } = gate()
    intercept.claim = interceptor
    const answers = Promise.all([inbox.accept(eventOf('one')), inbox.accept(eventOf('one'))])
    open()
    expect(await answers).toEqual(['accepted', 'duplicate'])
    expect(count('claim one')).toBe(1)
  })

  test('the inbox does not have the event yet', async () => {
    const { inbox, intercept } = machine()
    const { open, interceptor } = gate()
    intercept.claim = interceptor
    const acceptance = inbox.accept(eventOf('one'))
    expect([inbox.events?.get('one'), inbox.events?.list()]).toEqual([undefined, { events: [] }])
    open()
    await acceptance
    expect(inbox.events?.get('one')).toMatchObject({ key: 'one' })
  })

  test('a second delivery fails as the first does when the claim fails', async () => {
    const { inbox, intercept } = machine()
    const { open, interceptor } = gate()
    intercept.claim = async (_carryOut, key) => {
      await interceptor(async () => undefined, key)
      throw new Error('connection refused')
    }
    const first = inbox.accept(eventOf('one'))
    const second = inbox.accept(eventOf('one'))
    open()
    await expect(first).rejects.toThrow(withCode('unavailable'))
    await expect(second).rejects.toThrow(withCode('unavailable'))
  })

  test.each(['in-progress', 'done'] as const)(
    'a second delivery is answered as the first if it is %s',
    async (answer) => {
      const { inbox, intercept } = machine()
      const { open, interceptor } = gate()
      intercept.claim = (_carryOut, key) => interceptor(async () => answer, key)
      const settled = Promise.allSettled([inbox.accept(eventOf('one')), inbox.accept(eventOf('one'))])
      open()
      for (const each of await settled) {
        if (answer === 'done') expect(each).toEqual({ status: 'fulfilled', value: 'duplicate' })
        else expect(each).toMatchObject({ status: 'rejected', reason: { code: 'in_progress' } })
      }
    },
  )

  test('an inbox that closes before the answer rejects the event, gives the claim back and does not handle it', async () => {
    const { inbox, intercept, shared } = machine()
    const { open, interceptor } = gate()
    intercept.claim = interceptor
    const acceptance = inbox.accept(eventOf('one'))
    // The event was never accepted, so there is nothing to report.
    expect(await inbox.close({ timeoutMs: 1 })).toEqual({ unfinished: [] })
    open()
    await expect(acceptance).rejects.toThrow(withCode('closing'))
    const other = machine(shared)
    expect(await other.inbox.accept(eventOf('one'))).toBe('accepted')
  })

  test('closing waits for it', async () => {
    const { inbox, intercept, calls } = machine()
    const { open, interceptor } = gate()
    intercept.claim = interceptor
    const acceptance = inbox.accept(eventOf('one'))
    const closed = inbox.close()
    open()
    expect(await acceptance).toBe('accepted')
    const call = await calls.next()
    call.finish()
    expect(await closed).toEqual({ unfinished: [] })
  })
})

describe('an event whose claim failed', () => {
  test('is unavailable, with the cause, and accepted once the store is back', async () => {
    const { inbox, intercept, calls } = machine()
    intercept.claim = down
    intercept.release = down
    const acceptance = Promise.resolve(inbox.accept(eventOf('one')))
    await expect(acceptance).rejects.toThrow(withCode('unavailable'))
    await expect(acceptance).rejects.toHaveProperty('cause.message', 'connection refused')
    delete intercept.claim
    delete intercept.release
    expect(await inbox.accept(eventOf('one'))).toBe('accepted')
    expect((await calls.next()).event.key).toBe('one')
  })

  test('is also unavailable if the store throws immediately', async () => {
    const fails = () => {
      throw new Error('not connected')
    }
    const store = defineStore({ claim: fails, renew: () => false, complete: () => false, release: fails })
    const { inbox } = openInbox(memoryInbox({ store }))
    await expect((async () => inbox.accept(eventOf('one')))()).rejects.toThrow(withCode('unavailable'))
    expect(inbox.stats()).toMatchObject({ waiting: 0, running: 0 })
  })

  test('can be claimed by another machine if only the answer was lost', async () => {
    const { inbox, intercept, shared } = machine()
    intercept.claim = answerLost
    await expect(inbox.accept(eventOf('one'))).rejects.toThrow(withCode('unavailable'))
    const other = machine(shared)
    expect(await other.inbox.accept(eventOf('one'))).toBe('accepted')
  })

  test('fails only after its claim was released, so that a quick retry is not a duplicate', async () => {
    const { inbox, intercept, shared } = machine()
    const { open, interceptor } = gate()
    intercept.claim = answerLost
    intercept.release = interceptor
    const first = Promise.resolve(inbox.accept(eventOf('one'))).catch(() => shared.claim('one', 'b', 1_000))
    open()
    expect(await first).toBe('claimed')
  })

  test('is not a duplicate when it arrives again, although its claim could not be released', async () => {
    let clock = 1
    const { inbox, intercept, calls } = machine(lruStore({ now: () => clock }))
    intercept.claim = answerLost
    intercept.release = down
    await expect(inbox.accept(eventOf('one'))).rejects.toThrow(withCode('unavailable'))
    delete intercept.claim
    delete intercept.release
    await expect(inbox.accept(eventOf('one'))).rejects.toThrow(withCode('in_progress'))
    clock += 5_001
    expect(await inbox.accept(eventOf('one'))).toBe('accepted')
    expect((await calls.next()).event.key).toBe('one')
    expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
  })
})

describe('a store that does not answer', () => {
  afterEach(() => void vi.useRealTimers())

  test('is unavailable after a lease, and a claim that it makes later is released', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const { inbox, intercept, count } = machine()
    const { open, interceptor } = gate()
    intercept.claim = interceptor
    const failed = expect(inbox.accept(eventOf('one'))).rejects.toThrow(withCode('unavailable'))
    await vi.advanceTimersByTimeAsync(5_000)
    await failed
    open()
    await vi.waitFor(() => expect(count('release one')).toBe(2))
    expect(await inbox.accept(eventOf('one'))).toBe('accepted')
  })

  test('does not keep the sender waiting if it also never answers the release', async () => {
    const { inbox, intercept } = machine()
    intercept.claim = down
    intercept.release = () => new Promise(() => {})
    await expect(inbox.accept(eventOf('one'))).rejects.toThrow(withCode('unavailable'))
  })

  test('is unavailable if it answers with anything but its three words', async () => {
    const { inbox, intercept } = machine()
    intercept.claim = async () => 'OK'
    await expect(inbox.accept(eventOf('one'))).rejects.toThrow(withCode('unavailable'))
  })
})

describe('a claim that is released late', () => {
  test('undoes no newer claim of the same process', async () => {
    const first = machine()
    const { open, interceptor } = gate()
    first.intercept.claim = answerLost
    first.intercept.release = interceptor
    await expect(first.inbox.accept(eventOf('one'))).rejects.toThrow(withCode('unavailable'))
    // For the store its lease has run out meanwhile.
    await first.shared.release('one', first.owners[0] as string)
    delete first.intercept.claim
    expect(await first.inbox.accept(eventOf('one'))).toBe('accepted')
    open()
    await vi.waitFor(() => expect(first.count('release one')).toBe(1))
    const second = machine(first.shared)
    await expect(second.inbox.accept(eventOf('one'))).rejects.toThrow(withCode('in_progress'))
  })
})

describe('machines that share a store', () => {
  test('accept one of the concurrent deliveries of an event, and call none of them a duplicate yet', async () => {
    const first = machine()
    const others = [machine(first.shared), machine(first.shared), machine(first.shared)]
    const accept = async (inbox: Inbox) => inbox.accept(eventOf('one'))
    const acceptances = await Promise.all(
      [first, ...others].map(({ inbox }) => accept(inbox).catch(({ code }: WebhookError) => code)),
    )
    expect(acceptances.toSorted()).toEqual(['accepted', 'in_progress', 'in_progress', 'in_progress'])
  })

  test('lose no event whose process died before it acknowledged the event', async () => {
    let clock = 1
    const shared = lruStore({ now: () => clock })
    await shared.claim('one', 'a process that dies now', 5_000)
    const { inbox, calls } = machine(shared)
    clock += 3_000
    await expect(inbox.accept(eventOf('one'))).rejects.toThrow(withCode('in_progress'))
    clock += 3_000
    expect(await inbox.accept(eventOf('one'))).toBe('accepted')
    expect((await calls.next()).event.key).toBe('one')
  })

  test('call an event a duplicate that another of them has handled', async () => {
    const first = machine()
    await first.inbox.accept(eventOf('one'))
    const call = await first.calls.next()
    call.finish()
    await first.inbox.close()
    const second = machine(first.shared)
    expect(await second.inbox.accept(eventOf('one'))).toBe('duplicate')
  })
})
