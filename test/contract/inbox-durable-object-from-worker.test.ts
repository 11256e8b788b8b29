import { expect, test } from 'vitest'
import { durableObjectInbox, type InboxObject, inboxObject, type ObjectSql } from '../../src/cloudflare.ts'
import type { CloseOptions, Inbox, InboxDefinition, InboxHost } from '../../src/inbox/inbox.ts'
import { defineInbox } from '../../src/inbox/shared/define-inbox.ts'
import { inboxContract } from '../../src/testing/contract/inbox.ts'
import { storageInNode } from '../inbox/durable-object/storage-in-node.ts'

// The Worker's inbox in front of objects, in Node: the suite runs in one process, and everything between the two goes
// through requests. In workerd, the suite runs in the object (inbox-durable-object.test.ts).

// Deaths of the same millisecond have an order within an object only, and the suite is quick.
const shards = 1

/** The objects of an inbox, made when they are first asked. */
class Objects {
  readonly storages: ReturnType<typeof storageInNode>[] = []
  readonly #inboxes: Inbox[] = []
  readonly #byName = new Map<string, InboxObject>()

  open(host: InboxHost): Inbox {
    const get = (id: object) => this.#get((id as { name: string }).name, host)
    const worker = durableObjectInbox({
      shards,
      namespace: {
        idFromName: (name) => ({ name }),
        get: (id) => ({ fetch: (url, init) => get(id).fetch(new Request(url, init)) }),
      },
    }).open(host)
    return Object.assign(worker, { close: this.#closing(worker.close.bind(worker)) })
  }

  #get(name: string, host: InboxHost): InboxObject {
    const known = this.#byName.get(name)
    if (known !== undefined) return known
    const storage = storageInNode()
    storage.sql.exec('CREATE TABLE written (content TEXT)')
    const MediaInbox = inboxObject((_env, definition) => {
      const inbox = definition.open(host)
      this.#inboxes.push(inbox)
      return { inbox }
    })
    const object = new MediaInbox({ storage }, {})
    this.storages.push(storage)
    this.#byName.set(name, object)
    return object
  }

  /** The platform never closes an object, and the suite closes what it has opened. */
  #closing(closeWorker: Inbox['close']): Inbox['close'] {
    return async (options?: CloseOptions) => {
      const closed = closeWorker(options)
      const reports = await Promise.all(this.#inboxes.map((inbox) => inbox.close(options)))
      await closed
      return { unfinished: reports.flatMap(({ unfinished }) => unfinished) }
    }
  }
}

function subject() {
  const objects = new Objects()
  const inbox: InboxDefinition = defineInbox({ name: 'through requests', open: (host) => objects.open(host) })
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

inboxContract(subject, { test, expect }, { transactions: true })
