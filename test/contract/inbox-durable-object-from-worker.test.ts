import { expect, test } from 'vitest'
import { defineInbox } from '../../src/inbox/define-inbox.ts'
import type { ObjectSql } from '../../src/inbox/durable-object/cloudflare.ts'
import type { InboxDefinition } from '../../src/inbox/inbox.ts'
import { ObjectsInNode } from '../inbox/durable-object/objects-in-node.ts'
import { everyFeature } from './every-feature.ts'
import { inboxContract } from './suites/inbox.ts'

// The suite runs in one process, so that it sees both sides. In workerd, it runs in the object
// (inbox-durable-object.test.ts).

function subject() {
  const objects = new ObjectsInNode()
  const inbox: InboxDefinition = defineInbox({
    name: 'through requests',
    expects: true,
    ordersStrictly: true,
    limits: true,
    open: (host) => objects.open(host),
  })
  return {
    inbox,
    transactions: {
      write: (client: ObjectSql, text: string) => void client.exec('INSERT INTO written VALUES (?)', text),
      texts: () =>
        objects.storages.flatMap(({ sql }) =>
          sql
            .exec('SELECT content FROM written')
            .toArray()
            .map(({ content }) => content as string),
        ),
    },
  }
}

inboxContract(subject, { test, expect }, everyFeature)
