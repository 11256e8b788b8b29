import type { IdempotencyStore } from '../../idempotency/store.ts'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import type { Runner } from './runner.ts'

/** A store to put to the test. */
export interface StoreSubject {
  /** Fresh: it has seen no key. */
  readonly store: IdempotencyStore
  /** Lets `ms` milliseconds pass for the store, by its injected clock or in fact. */
  advance(ms: number): MaybePromise<void>
  /** Cuts the store off from where it keeps its keys. Left out where there is nothing to cut. */
  breakConnection?(): MaybePromise<void>
  /** Frees what the subject opened. */
  close?(): MaybePromise<void>
}

const lease = 1_000

// Keys that a careless encoding would confuse.
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
 * What every idempotency store has to do.
 *
 * ```ts
 * import { expect, test } from 'vitest'
 * storeContract(() => ({ store: myStore(), advance: (ms) => sleep(ms) }), { test, expect })
 * ```
 * @param factory makes a fresh subject for each test
 */
export function storeContract(factory: () => MaybePromise<StoreSubject>, { test, expect }: Runner): void {
  const check = (name: string, run: (subject: StoreSubject) => Promise<void>) =>
    test(name, async () => {
      const subject = await factory()
      try {
        await run(subject)
      } finally {
        await subject.close?.()
      }
    })

  check('claims a key that it has not seen', async ({ store }) => {
    expect(await store.claim('key', 'a', lease)).toBe('claimed')
  })

  check('lets one of 50 concurrent claims win', async ({ store }) => {
    const claims = await Promise.all(Array.from({ length: 50 }, (_, i) => store.claim('key', `owner-${i}`, lease)))
    expect(claims.filter((claim) => claim === 'claimed').length).toBe(1)
    expect(claims.filter((claim) => claim === 'in-progress').length).toBe(49)
  })

  check('says in-progress while a lease lasts, to its own owner too', async ({ store, advance }) => {
    await store.claim('key', 'a', lease)
    await advance(lease / 2)
    expect(await store.claim('key', 'b', lease)).toBe('in-progress')
    expect(await store.claim('key', 'a', lease)).toBe('in-progress')
  })

  check('does not let a refused claim lengthen the lease', async ({ store, advance }) => {
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

  check('lets a key be claimed again when its lease has run out', async ({ store, advance }) => {
    await store.claim('key', 'a', lease)
    await advance(lease * 1.1)
    expect(await store.claim('key', 'b', lease)).toBe('claimed')
    expect(await store.claim('key', 'a', lease)).toBe('in-progress')
  })

  check('lets one of 50 concurrent claims take over a lease that has run out', async ({ store, advance }) => {
    await store.claim('key', 'a', lease)
    await advance(lease * 1.1)
    const claims = await Promise.all(Array.from({ length: 50 }, (_, i) => store.claim('key', `owner-${i}`, lease)))
    expect(claims.filter((claim) => claim === 'claimed').length).toBe(1)
  })

  check('renews a lease from the moment of the renewal', async ({ store, advance }) => {
    await store.claim('key', 'a', lease)
    await advance(lease * 0.7)
    expect(await store.renew('key', 'a', lease)).toBe(true)
    await advance(lease * 0.7)
    expect(await store.claim('key', 'b', lease)).toBe('in-progress')
    await advance(lease * 0.7)
    expect(await store.claim('key', 'b', lease)).toBe('claimed')
  })

  check('lets nobody but its owner renew, complete or release a claim', async ({ store }) => {
    await store.claim('key', 'a', lease)
    expect(await store.renew('key', 'b', lease)).toBe(false)
    expect(await store.complete('key', 'b')).toBe(false)
    expect(await store.release('key', 'b')).toBe(false)
    expect(await store.claim('key', 'c', lease)).toBe('in-progress')
    expect(await store.complete('key', 'a')).toBe(true)
  })

  check('renews a lease that ran out and that nobody took', async ({ store, advance }) => {
    await store.claim('key', 'a', lease)
    await advance(lease * 1.1)
    expect(await store.renew('key', 'a', lease)).toBe(true)
    expect(await store.claim('key', 'b', lease)).toBe('in-progress')
  })

  check('completes a key whose lease ran out and that nobody took', async ({ store, advance }) => {
    await store.claim('key', 'a', lease)
    await advance(lease * 1.1)
    expect(await store.complete('key', 'a')).toBe(true)
    expect(await store.claim('key', 'b', lease)).toBe('done')
  })

  check('tells an owner that its lease was lost once another took the key', async ({ store, advance }) => {
    await store.claim('key', 'a', lease)
    await advance(lease * 1.1)
    await store.claim('key', 'b', lease)
    expect(await store.renew('key', 'a', lease)).toBe(false)
    expect(await store.complete('key', 'a')).toBe(false)
    expect(await store.release('key', 'a')).toBe(false)
    expect(await store.claim('key', 'c', lease)).toBe('in-progress')
  })

  check('tells an owner that its lease was lost once another finished the key', async ({ store, advance }) => {
    await store.claim('key', 'a', lease)
    await advance(lease * 1.1)
    await store.claim('key', 'b', lease)
    await store.complete('key', 'b')
    expect(await store.renew('key', 'a', lease)).toBe(false)
    expect(await store.complete('key', 'a')).toBe(false)
    expect(await store.release('key', 'a')).toBe(false)
    expect(await store.claim('key', 'a', lease)).toBe('done')
  })

  // An answer can be lost on its way, and the completion is tried again then.
  check('completes a key again for the owner that completed it', async ({ store }) => {
    await store.claim('key', 'a', lease)
    await store.complete('key', 'a')
    expect(await store.complete('key', 'a')).toBe(true)
    expect(await store.claim('key', 'b', lease)).toBe('done')
  })

  check('lets a released key be claimed at once', async ({ store }) => {
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

  check('tells keys of any text apart', async ({ store }) => {
    for (const key of [...awkwardKeys, ...jsonKeys]) expect(await store.claim(key, 'a', lease)).toBe('claimed')
    for (const key of awkwardKeys) expect(await store.complete(key, 'a')).toBe(true)
    for (const key of awkwardKeys) expect(await store.claim(key, 'b', lease)).toBe('done')
    for (const key of jsonKeys) expect(await store.claim(key, 'b', lease)).toBe('in-progress')
  })

  check('throws in an outage, and never calls a key unseen', async ({ store, breakConnection }) => {
    if (breakConnection === undefined) return
    await store.claim('key', 'a', lease)
    await breakConnection()
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
