import { reviveEvent } from '../engine/stored.ts'
import type { Inbox, InboxHost } from '../inbox.ts'
import type { Database, OverdueExpectation } from './database.ts'
import { makeNewEvent, storedChanges } from './intake.ts'

// An event that an application offers in a transaction of its own is stored as an expectation of nothing, which is overdue:
// accepting it there would lock its lane until the application commits.

/** The rule of an offered event, as JSON. */
export const noRule = 'null'

interface Offering {
  readonly database: Database
  readonly host: Pick<InboxHost, 'handlersOf'>
  /** @throws WebhookError `closing` */
  readonly checkOpen: () => void
  /** Publishes new handlers, before another process can find an event that owes them. */
  readonly publish: () => Promise<void> | undefined
  /** Called when an event was offered: in this process its commit may tell nobody. */
  readonly offered: () => void
}

/** Makes `acceptIn` of an inbox, if its database can. */
export function acceptingIn({ database, host, checkOpen, publish, offered }: Offering): Inbox['acceptIn'] {
  if (database.offer === undefined) return
  return (client, accepted) => {
    checkOpen()
    const offer = () => {
      const event = makeNewEvent(database, accepted, host.handlersOf(accepted.event), undefined)
      const acceptance = (database as Required<Database>).offer(client, event)
      offered()
      return acceptance
    }
    const publishing = publish()
    return publishing === undefined ? offer() : publishing.then(offer)
  }
}

/** An offered event changes expectations once it is accepted, as a delivered one does. */
export function withChanges(
  overdue: OverdueExpectation,
  database: Database,
  host: Pick<InboxHost, 'expectations' | 'handlersOf'>,
): OverdueExpectation {
  if (overdue.offered === undefined) return overdue
  const accepted = { event: reviveEvent(JSON.parse(overdue.offered)), receivedAt: new Date() }
  const changes = host.expectations?.(accepted)
  return { ...overdue, changes: changes && storedChanges(database, accepted, changes, host.handlersOf) }
}
