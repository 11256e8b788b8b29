import { PGlite } from '@electric-sql/pglite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connectionTo } from '../../src/inbox/pglite/link.ts'
import { eventStoreContract } from '../../src/testing/contract/event-store.ts'
import { postgresStores } from './postgres-stores.ts'

describe('a PGlite as an event store', () => {
  let db: PGlite
  beforeAll(async () => {
    db = await PGlite.create()
  })
  afterAll(() => db.close())
  const query = async (text: string) => (await db.exec(text)).at(-1)?.rows ?? []
  const subject = postgresStores(() => ({ query, connection: connectionTo(db), listen: false }))
  eventStoreContract(subject, { test, expect })
})
