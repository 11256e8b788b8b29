import {
  durableObjectInbox,
  durableObjectStore,
  inboxObject,
  type ObjectNamespace,
} from '../../../src/inbox/durable-object/cloudflare.ts'
import type { Inbox, InboxDefinition } from '../../../src/index.ts'
import type { ObjectStorage } from '../../../src/internal/storage/durable-objects.ts'
import { storageInNode } from '../../inbox/durable-object/storage-in-node.ts'
import { eventOf, openInbox } from '../../support/inbox.ts'
import { untyped } from '../../support/untyped.ts'
import { ages, endedEvent, ttlFrom } from './durable.ts'
import { elapsed, never, type Observations, required } from './elapsed.ts'
import { concurrencyOf, maxDeadLettersOf, maxWaitingOf, withOpen } from './inboxes.ts'

/** Objects that give every step the same answer. Returns the names of those that were asked, and the last input. */
function objects(result: unknown) {
  const names = new Set<string>()
  let input: unknown
  const namespace: ObjectNamespace = {
    idFromName(name) {
      names.add(name)
      return {}
    },
    get: () => ({
      async fetch(_url, { body }) {
        ;({ input } = JSON.parse(body))
        return { json: async () => ({ result }) }
      },
    }),
  }
  return { namespace, names, input: () => input }
}

const silentObjects: ObjectNamespace = { idFromName: () => ({}), get: () => ({ fetch: never }) }

export const ofDurableObjectInbox: Observations = {
  namespace: () => required(() => durableObjectInbox(untyped({}))),
  async shards() {
    const { namespace, names } = objects({})
    await openInbox(durableObjectInbox({ namespace })).inbox.stats()
    return names.size
  },
  timeoutMs: () =>
    elapsed(async () => openInbox(durableObjectInbox({ namespace: silentObjects })).inbox.accept(eventOf('one'))),
}

export const ofDurableObjectStore: Observations = {
  namespace: () => required(() => durableObjectStore(untyped({}))),
  async shards() {
    const { namespace, names } = objects('claimed')
    const store = durableObjectStore({ namespace })
    for (let i = 0; i < 500; i++) await store.claim(`${i}`, 'a', 1)
    return names.size
  },
  async ttlMs() {
    const { namespace, input } = objects(true)
    await durableObjectStore({ namespace }).complete('key', 'a')
    return (input() as { leaseMs: number }).leaseMs
  },
  timeoutMs: () => elapsed(async () => durableObjectStore({ namespace: silentObjects }).claim('key', 'a', 1)),
}

/** The inbox of an object with the default options. */
const inObject = (storage: ObjectStorage = storageInNode()): InboxDefinition => ({
  name: 'inboxObject',
  open(host) {
    let inbox: Inbox | undefined
    const MediaInbox = inboxObject((_env, definition) => {
      inbox = definition.open(host)
      return { inbox }
    })
    new MediaInbox({ storage }, {})
    return inbox as Inbox
  },
})

export const ofInboxObject: Observations = {
  concurrency: () => concurrencyOf(inObject()),
  maxWaiting: () => maxWaitingOf(inObject()),
  maxDeadLetters: () => maxDeadLettersOf(inObject()),
  async ttlMs() {
    const storage = storageInNode()
    const { sql } = storage
    await withOpen(inObject(storage), async () => {})
    for (const age of ages) sql.exec(endedEvent, `${age}`, Date.now() - age)
    // An object cleans up when it wakes.
    return withOpen(inObject(storage), async () => {
      await new Promise((resolve) => setTimeout(resolve, 50))
      const [row] = sql.exec('SELECT count(*) AS count FROM inbox_event').toArray()
      return ttlFrom(row?.['count'] as number)
    })
  },
}
