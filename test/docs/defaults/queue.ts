import { lruStore } from '../../../src/idempotency/lru.ts'
import { queueInbox } from '../../../src/inbox/queue.ts'
import { eventOf, openInbox } from '../../support/inbox.ts'
import { untyped } from '../../support/untyped.ts'
import { elapsed, never, type Observations, required } from './elapsed.ts'

const store = lruStore()
const send = () => {}

export const ofQueueInbox: Observations = {
  send: () => required(() => queueInbox(untyped({ store }))),
  store: () => required(() => queueInbox(untyped({ send }))),
  sendTimeoutMs: () => elapsed(async () => openInbox(queueInbox({ store, send: never })).inbox.accept(eventOf('one'))),
  async leaseMs() {
    let leaseMs: number | undefined
    const claims: typeof store.claims = (options) => {
      leaseMs = options.leaseMs
      return store.claims(options)
    }
    openInbox(queueInbox({ send, store: { ...store, claims } }))
    return leaseMs
  },
}
