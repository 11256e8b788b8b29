import { expect, test } from 'vitest'
import { ObjectStore } from '../../src/inbox/durable-object/store.ts'
import { limitsOf } from '../../src/inbox/sqlite-tables/storage.ts'
import type { ObjectSql } from '../../src/storage/durable-objects.ts'
import { eventStoreContract } from '../../src/testing/contract/event-store.ts'
import { storageInNode } from '../inbox/durable-object/storage-in-node.ts'

eventStoreContract(
  () => {
    const storage = storageInNode()
    storage.sql.exec('CREATE TABLE written (content TEXT)')
    return {
      open: (host) => new ObjectStore(host, storage, limitsOf({})),
      // The next object finds what this one leaves.
      crash() {},
      transactions: {
        write: (sql: ObjectSql, text: string) => void sql.exec('INSERT INTO written VALUES (?)', text),
        texts: () =>
          storage.sql
            .exec('SELECT content FROM written')
            .toArray()
            .map((row) => `${row['content']}`),
      },
    }
  },
  { test, expect },
  { shared: false },
)
