import { expect, test } from 'vitest'
import { eventStoreContract } from '../../src/testing/contract/event-store.ts'
import { sqliteStores } from './sqlite-stores.ts'

eventStoreContract(sqliteStores, { test, expect }, { shared: false })
