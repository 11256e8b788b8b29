import { describe, expect, test } from 'vitest'
import { lruStore } from '../../src/idempotency/lru.ts'
import type { IdempotencyStore } from '../../src/idempotency/store.ts'
import { storeContract } from '../../src/testing/store-contract.ts'
import { failuresOf, type Wrong } from './failures-of.ts'

// A wrong one is found after a wait of 30 s at worst.

const subjectOf = (wrong: Wrong<IdempotencyStore>) => () => {
  let time = 1
  const right = lruStore({ now: () => time })
  const advance = (ms: number) => {
    time += ms
  }
  return { store: { ...right, ...wrong(right) }, advance }
}

/** The fault, the store that has it, the check that catches it, and the message of that check. */
const wrongStores: [string, Wrong<IdempotencyStore>, string, string][] = [
  [
    'checks and claims in two steps',
    () => {
      const seen = new Set<string>()
      return {
        async claim(key) {
          if (await seen.has(key)) return 'in-progress'
          seen.add(key)
          return 'claimed'
        },
      }
    },
    'lets one of 50 concurrent claims win',
    'expected 50 to be 1',
  ],
  [
    'lets an owner claim again while its lease lasts',
    (store) => ({
      claim(key, owner, leaseMs) {
        store.release(key, owner)
        return store.claim(key, owner, leaseMs)
      },
    }),
    'says in-progress while a lease lasts, even to its owner',
    "expected 'claimed' to be 'in-progress'",
  ],
  [
    'extends a lease when a claim fails',
    (store) => ({
      async claim(key, owner, leaseMs) {
        const claim = await store.claim(key, owner, leaseMs)
        if (claim === 'in-progress') store.renew(key, 'a', leaseMs)
        return claim
      },
    }),
    'does not extend the lease for a claim that fails',
    "expected 'in-progress' to be 'claimed'",
  ],
  [
    'lets any owner release',
    (store) => ({ release: (key) => store.release(key, 'a') }),
    'lets only its owner renew, complete or release a claim',
    'expected true to be false',
  ],
  [
    'lets any owner complete',
    (store) => ({ complete: (key) => store.complete(key, 'a') }),
    'lets only its owner renew, complete or release a claim',
    'expected true to be false',
  ],
  [
    'forgets a completed key',
    (store) => ({ complete: (key, owner) => store.release(key, owner) }),
    'says done once a key was completed, for longer than a lease',
    "expected 'claimed' to be 'done'",
  ],
  [
    'never lets a lease run out',
    (store) => ({ claim: (key, owner, leaseMs) => store.claim(key, owner, leaseMs * 1_000) }),
    'lets a key be claimed again after its lease ran out',
    "expected 'in-progress' to be 'claimed'",
  ],
  [
    'does not renew',
    () => ({ renew: () => true }),
    'renews a lease from the time of the renewal',
    "expected 'claimed' to be 'in-progress'",
  ],
  [
    'lets an owner renew a lease that it has lost',
    () => ({ renew: () => true }),
    'tells an owner that its lease was lost once another owner took the key',
    'expected true to be false',
  ],
  [
    'confuses upper and lower case',
    (store) => ({ claim: (key, owner, leaseMs) => store.claim(key.toLowerCase(), owner, leaseMs) }),
    'distinguishes keys with any characters',
    "expected 'in-progress' to be 'claimed'",
  ],
  [
    'truncates long keys',
    (store) => ({
      claim: (key, owner, leaseMs) => store.claim(key.slice(0, 255), owner, leaseMs),
      complete: (key, owner) => store.complete(key.slice(0, 255), owner),
    }),
    'distinguishes keys with any characters',
    "expected 'in-progress' to be 'claimed'",
  ],
]

describe('the contract suite of stores', () => {
  test('passes a correct store', async () => {
    const right = subjectOf(() => ({}))
    expect(await failuresOf((runner) => storeContract(right, runner, { connection: false }))).toEqual({})
  })

  test.each(wrongStores)('catches a store that %s', async (_, wrong, caughtBy, message) => {
    expect(
      await failuresOf((runner) => storeContract(subjectOf(wrong), runner, { connection: false }), caughtBy),
    ).toEqual({ [caughtBy]: expect.stringContaining(message) })
  })

  test('catches a store that mistakes an outage for an unknown key', async () => {
    const subject = () => ({ store: lruStore({ now: () => 1 }), advance() {}, breakConnection() {} })
    const caughtBy = 'throws during an outage, and never claims an unknown key'
    const failures = await failuresOf((runner) => storeContract(subject, runner), caughtBy)
    expect(failures).toEqual({ [caughtBy]: expect.stringContaining('expected false to be true') })
  })
})
