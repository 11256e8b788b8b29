import type { StoreSteps } from '../idempotency/store.ts'
import type { MaybePromise } from '../internal/maybe-promise.ts'
import { type Runner, skip } from './runner.ts'

/** An idempotency store under test. */
export interface StoreSubject {
  /** A fresh store that has seen no key. */
  readonly store: StoreSteps
  /** Advances the store's time, by an injected clock or in real time. */
  advance(ms: number): MaybePromise<void>
  /** Cuts the connection to the store's keys. */
  breakConnection?(): MaybePromise<void>
  close?(): MaybePromise<void>
}

/** Optional parts of the contract. */
export interface StoreFeatures {
  /**
   * `true` if the store reaches its keys over a connection, which the subject can break.
   * @defaultValue true
   */
  readonly connection?: boolean
}

const lease = 60_000

// Keys that careless encoding would mix up.
const awkwardKeys = [
  'a',
  'A',
  'a ',
  ' a',
  'a:b',
  'a::b',
  ':',
  'é',
  'e\u0301',
  '映画',
  '🎬',
  '*',
  '{a}',
  'x'.repeat(256),
  `${'x'.repeat(255)}y`,
]
const jsonKeys = [
  '["encoding.finished","media-1",null]',
  '["encoding.finished","media-1",""]',
  '__proto__',
  'a\nb',
  'a\0b',
]

/**
 * Tests that an idempotency store keeps its contract.
 *
 * ```ts
 * import { expect, test } from 'vitest'
 * storeContract(() => ({ store: myStore(), advance: (ms) => sleep(ms) }), { test, expect }, { connection: false })
 * ```
 * @param factory creates a fresh subject for each test
 * @param features optional parts that the store has; tests of the others are skipped
 */
export function storeContract(
  factory: () => MaybePromise<StoreSubject>,
  { test, expect }: Runner,
  { connection = true }: StoreFeatures = {},
): void {
  const check = (name: string, run: (subject: StoreSubject) => Promise<void>) =>
    test(name, async () => {
      const subject = await factory()
      try {
        if ((subject.breakConnection !== undefined) !== connection)
          throw new Error('give the subject `breakConnection`, or the suite `{ connection: false }`')
        await run(subject)
      } finally {
        await subject.close?.()
      }
    })

  check('claims a key that it has not seen before', async ({ store }) => {
    expect(await store.claim('key', 'a', lease)).toBe('claimed')
  })

  check('lets one of 50 concurrent claims win', async ({ store }) => {
    const claims = await Promise.all(Array.from({ length: 50 }, (_, i) => store.claim('key', `owner-${i}`, lease)))
    expect(claims.filter((claim) => claim === 'claimed').length).toBe(1)
    expect(claims.filter((claim) => claim === 'in-progress').length).toBe(49)
  })

  check('says in-progress while a lease lasts, even to its owner', async ({ store, advance }) => {
    await store.claim('key', 'a', lease)
    await advance(lease / 2)
    expect(await store.claim('key', 'b', lease)).toBe('in-progress')
    expect(await store.claim('key', 'a', lease)).toBe('in-progress')
  })

  check('does not extend the lease for a claim that fails', async ({ store, advance }) => {
    await store.claim('key', 'a', lease)
    await advance(lease * 0.7)
    await store.claim('key', 'a', lease)
    await store.claim('key', 'b', lease)
    await advance(lease * 0.7)
    expect(await store.claim('key', 'b', lease)).toBe('claimed')
  })

  check('says done once a key was completed, for longer than a lease', async ({ store, advance }) => {
    await store.claim('key', 'a', lease)
    expect(await store.complete('key', 'a')).toBe(true)
    expect(await store.claim('key', 'b', lease)).toBe('done')
    await advance(lease * 2)
    expect(await store.claim('key', 'a', lease)).toBe('done')
  })

  check('lets a key be claimed again after its lease ran out', async ({ store, advance }) => {
    await store.claim('key', 'a', lease)
    await advance(lease * 1.1)
    expect(await store.claim('key', 'b', lease)).toBe('claimed')
    expect(await store.claim('key', 'a', lease)).toBe('in-progress')
  })

  check('lets one of 50 concurrent claims take over a lease that ran out', async ({ store, advance }) => {
    await store.claim('key', 'a', lease)
    await advance(lease * 1.1)
    const claims = await Promise.all(Array.from({ length: 50 }, (_, i) => store.claim('key', `owner-${i}`, lease)))
    expect(claims.filter((claim) => claim === 'claimed').length).toBe(1)
  })

  check('renews a lease from the time of the renewal', async ({ store, advance }) => {
    await store.claim('key', 'a', lease)
    await advance(lease * 0.7)
    expect(await store.renew('key', 'a', lease)).toBe(true)
    await advance(lease * 0.7)
    expect(await store.claim('key', 'b', lease)).toBe('in-progress')
    await advance(lease * 0.7)
    expect(await store.claim('key', 'b', lease)).toBe('claimed')
  })

  check('lets only its owner renew, complete or release a claim', async ({ store }) => {
    await store.claim('key', 'a', lease)
    expect(await store.renew('key', 'b', lease)).toBe(false)
    expect(await store.complete('key', 'b')).toBe(false)
    expect(await store.release('key', 'b')).toBe(false)
    expect(await store.claim('key', 'c', lease)).toBe('in-progress')
    expect(await store.complete('key', 'a')).toBe(true)
  })

  check('renews a lease that ran out, if no other owner took the key', async ({ store, advance }) => {
    await store.claim('key', 'a', lease)
    await advance(lease * 1.1)
    expect(await store.renew('key', 'a', lease)).toBe(true)
    expect(await store.claim('key', 'b', lease)).toBe('in-progress')
  })

  check('completes a key whose lease ran out, if no other owner took the key', async ({ store, advance }) => {
    await store.claim('key', 'a', lease)
    await advance(lease * 1.1)
    expect(await store.complete('key', 'a')).toBe(true)
    expect(await store.claim('key', 'b', lease)).toBe('done')
  })

  check('tells an owner that its lease was lost once another owner took the key', async ({ store, advance }) => {
    await store.claim('key', 'a', lease)
    await advance(lease * 1.1)
    await store.claim('key', 'b', lease)
    expect(await store.renew('key', 'a', lease)).toBe(false)
    expect(await store.complete('key', 'a')).toBe(false)
    expect(await store.release('key', 'a')).toBe(false)
    expect(await store.claim('key', 'c', lease)).toBe('in-progress')
  })

  check('tells an owner that its lease was lost once another owner finished the key', async ({ store, advance }) => {
    await store.claim('key', 'a', lease)
    await advance(lease * 1.1)
    await store.claim('key', 'b', lease)
    await store.complete('key', 'b')
    expect(await store.renew('key', 'a', lease)).toBe(false)
    expect(await store.complete('key', 'a')).toBe(false)
    expect(await store.release('key', 'a')).toBe(false)
    expect(await store.claim('key', 'a', lease)).toBe('done')
  })

  // The owner completes again if the answer to its first completion is lost.
  check('completes a key again for the owner that completed it', async ({ store }) => {
    await store.claim('key', 'a', lease)
    await store.complete('key', 'a')
    expect(await store.complete('key', 'a')).toBe(true)
    expect(await store.claim('key', 'b', lease)).toBe('done')
  })

  check('lets a released key be claimed immediately', async ({ store }) => {
    await store.claim('key', 'a', lease)
    expect(await store.release('key', 'a')).toBe(true)
    expect(await store.claim('key', 'b', lease)).toBe('claimed')
  })

  check('never forgets a finished key because of a release', async ({ store }) => {
    await store.claim('key', 'a', lease)
    await store.complete('key', 'a')
    expect(await store.release('key', 'a')).toBe(false)
    expect(await store.claim('key', 'b', lease)).toBe('done')
  })

  check('releases nothing that was not claimed', async ({ store }) => {
    expect(await store.release('key', 'a')).toBe(false)
  })

  check('distinguishes keys with any characters', async ({ store }) => {
    for (const key of [...awkwardKeys, ...jsonKeys]) expect(await store.claim(key, 'a', lease)).toBe('claimed')
    for (const key of awkwardKeys) expect(await store.complete(key, 'a')).toBe(true)
    for (const key of awkwardKeys) expect(await store.claim(key, 'b', lease)).toBe('done')
    for (const key of jsonKeys) expect(await store.claim(key, 'b', lease)).toBe('in-progress')
  })

  const outage = 'throws during an outage, and never claims an unknown key'
  if (!connection) return skip({ test }, outage, 'its features have connection: false')
  check(outage, async ({ store, breakConnection }) => {
    await store.claim('key', 'a', lease)
    await breakConnection?.()
    for (const call of [
      () => store.claim('key', 'b', lease),
      () => store.claim('another key', 'b', lease),
      () => store.renew('key', 'a', lease),
      () => store.complete('key', 'a'),
      () => store.release('key', 'a'),
    ]) {
      expect(await throws(call)).toBe(true)
    }
  })
}

async function throws(call: () => unknown): Promise<boolean> {
  try {
    await call()
    return false
  } catch {
    return true
  }
}
