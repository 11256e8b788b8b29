import { expect, test } from 'vitest'
import { lruStore } from '../../src/idempotency/lru.ts'
import { storeContract } from '../../src/testing/store-contract.ts'

function lruSubject() {
  let time = 1_000
  const advance = (ms: number) => {
    time += ms
  }
  return { store: lruStore({ now: () => time }), advance }
}

storeContract(lruSubject, { test, expect }, { connection: false })
