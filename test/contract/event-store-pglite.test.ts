import { describe, expect, test } from 'vitest'
import { eventStoreContract } from '../../src/testing/contract/event-store.ts'
import { pgliteStores } from './postgres-stores.ts'

describe('a PGlite as an event store', () => {
  eventStoreContract(pgliteStores(), { test, expect })
})
