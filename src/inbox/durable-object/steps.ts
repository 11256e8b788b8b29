import type { ObjectSteps } from '../../storage/durable-objects.ts'
import { reviveAccepted } from '../engine/stored.ts'
import type { AcceptedEvent } from '../inbox.ts'
import type { EventQuery } from '../reading.ts'
import type { ObjectInbox } from './inbox.ts'
import { packDeadLetter, unpackUnreadable, type WireUnreadable } from './wire.ts'

/** A page of dead letters. */
export interface Page {
  readonly limit: number
  readonly offset: number
}

/** The steps that an inbox in an object answers to its Worker. */
export const inboxSteps = (inbox: ObjectInbox): ObjectSteps => ({
  accept: (accepted: AcceptedEvent) => inbox.accept(reviveAccepted(accepted)),
  keepUnreadable: (unreadable: WireUnreadable) => inbox.keepUnreadable(unpackUnreadable(unreadable)),
  stats: () => inbox.stats(),
  list: (page: Page) => inbox.deadLetters.list(page).map(packDeadLetter),
  get(key: string) {
    const deadLetter = inbox.deadLetters.get(key)
    return deadLetter && packDeadLetter(deadLetter)
  },
  replay: (key: string) => inbox.deadLetters.replay(key),
  events: (query: EventQuery) => inbox.events.page(query),
  event: (key: string) => inbox.events.get(key),
  retryNow: (key: string) => inbox.events.retryNow(key),
  history: (mediaId: string) => inbox.history(mediaId),
  discard: (key: string) => inbox.deadLetters.discard(key),
})
