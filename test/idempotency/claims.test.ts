import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { defineStore } from '../../src/idempotency/define-store.ts'
import { lruStore } from '../../src/idempotency/lru.ts'
import type { Claim, Claims } from '../../src/idempotency/store.ts'
import { silent } from '../support/silent.ts'

const leaseMs = 300

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => void vi.useRealTimers())

/** Makes the claims of an inbox in a store whose answers a test can replace. */
function subject() {
  const steps = {
    claim: vi.fn((): Claim | Promise<Claim> => 'claimed'),
    renew: vi.fn((): boolean | Promise<boolean> => true),
    complete: vi.fn((): boolean | Promise<boolean> => true),
    release: vi.fn((): boolean | Promise<boolean> => true),
  }
  const warn = vi.fn()
  const lost: string[] = []
  const logger = { ...silent, warn }
  const claims = defineStore(steps).claims({ leaseMs, logger, onLost: (key) => void lost.push(key) })
  return { ...steps, claims, warn, lost }
}

describe('a claim', () => {
  test('is answered immediately by a store that answers immediately', () => {
    const { claims, claim } = subject()
    expect(claims.claim('one')).toBe('claimed')
    claim.mockReturnValueOnce(Promise.resolve('claimed' as const))
    expect(claims.claim('two')).toBeInstanceOf(Promise)
  })

  test.each(['done', 'in-progress'] as const)(
    'that is answered %s is neither renewed nor completed',
    async (answer) => {
      const { claims, claim, renew, complete } = subject()
      claim.mockReturnValue(answer)
      expect(claims.claim('one')).toBe(answer)
      const recorded = vi.fn()
      claims.complete('one', recorded)
      expect(recorded).toHaveBeenCalledOnce()
      await vi.advanceTimersByTimeAsync(leaseMs * 2)
      expect([renew.mock.calls, complete.mock.calls]).toEqual([[], []])
      expect(vi.getTimerCount()).toBe(0)
    },
  )

  test('is renewed beside the others, until it is released', async () => {
    const { claims, renew, release } = subject()
    for (const key of ['one', 'two']) await claims.claim(key)
    await vi.advanceTimersByTimeAsync(leaseMs / 3)
    expect(renew.mock.calls.map(([key]: unknown[]) => key)).toEqual(['one', 'two'])
    await claims.release('one')
    expect(release).toHaveBeenCalledOnce()
    await vi.advanceTimersByTimeAsync(leaseMs / 3)
    expect(renew.mock.calls.map(([key]: unknown[]) => key)).toEqual(['one', 'two', 'two'])
    claims.stop()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('that is not held is not released', async () => {
    const { claims, release } = subject()
    await claims.release('one')
    expect(release).not.toHaveBeenCalled()
  })

  test('that cannot be released runs out by itself, and the log says so', async () => {
    const { claims, release, warn } = subject()
    const err = new Error('connection refused')
    await claims.claim('one')
    release.mockReturnValueOnce(Promise.reject(err))
    await claims.release('one')
    expect(warn.mock.calls).toEqual([[{ key: 'one', err }, 'the idempotency store could not release a claim']])
  })

  test.each<[string, (claims: Claims) => unknown]>([
    ['completed', (claims) => claims.complete('one', () => {})],
    ['given back', (claims) => claims.release('one')],
  ])('that was %s while the store said that it is lost does not count as lost', async (_, end) => {
    const { claims, renew, complete, lost } = subject()
    let answer = (_isHeld: boolean) => {}
    renew.mockReturnValueOnce(
      new Promise((resolve) => {
        answer = resolve
      }),
    )
    complete.mockReturnValueOnce(new Promise(() => {}))
    await claims.claim('one')
    await vi.advanceTimersByTimeAsync(leaseMs / 3)
    expect(renew).toHaveBeenCalledOnce()
    await end(claims)
    answer(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(lost).toEqual([])
  })

  test('that is lost is reported once, and renewed no more', async () => {
    const { claims, renew, lost } = subject()
    await claims.claim('one')
    renew.mockReturnValueOnce(false)
    await vi.advanceTimersByTimeAsync(leaseMs * 3)
    expect(lost).toEqual(['one'])
    expect(renew).toHaveBeenCalledOnce()
  })
})

describe('a completion', () => {
  test('that is tried twice counts once, in any order of the answers', async () => {
    const { claims, complete, warn } = subject()
    const answers: ((isDone: boolean) => void)[] = []
    complete.mockImplementation(() => new Promise<boolean>((resolve) => answers.push(resolve)))
    const recorded = vi.fn()
    await claims.claim('one')
    claims.complete('one', recorded)
    await vi.advanceTimersByTimeAsync(leaseMs / 3)
    expect(answers).toHaveLength(2)
    answers[1]?.(true)
    answers[0]?.(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(recorded).toHaveBeenCalledOnce()
    expect(warn).not.toHaveBeenCalled()
  })

  test('of a lease that was lost is recorded, with a warning', async () => {
    const { claims, complete, warn } = subject()
    complete.mockReturnValueOnce(false)
    const recorded = vi.fn()
    await claims.claim('one')
    claims.complete('one', recorded)
    expect(recorded).toHaveBeenCalledOnce()
    expect(warn.mock.calls).toEqual([[{ key: 'one' }, expect.stringContaining('the lease was lost')]])
  })
})

describe('the claims of two inboxes in one lru store', () => {
  function two() {
    let time = 0
    const store = lruStore({ now: () => time })
    const options = { leaseMs, logger: silent, onLost() {} }
    const wait = (ms: number) => {
      time += ms
    }
    return { wait, first: store.claims(options), second: store.claims(options) }
  }

  test('are not released by the other one', async () => {
    const { first, second } = two()
    expect(first.claim('one')).toBe('claimed')
    await second.release('one')
    expect(second.claim('one')).toBe('in-progress')
  })

  test('run out a lease after their own inbox stops, and not with the other one', () => {
    const { wait, first, second } = two()
    first.claim('of the first')
    second.claim('of the second')
    first.stop()
    wait(leaseMs - 1)
    expect(second.claim('of the first')).toBe('in-progress')
    wait(1)
    expect(second.claim('of the first')).toBe('claimed')
    expect(first.claim('of the second')).toBe('in-progress')
  })
})
