import type { ObjectStorage } from '../../storage/durable-objects.ts'
import type { InboxHost } from '../inbox.ts'
import { checkQuery } from '../operations/event-query.ts'
import type { EventQuery } from '../reading.ts'
import type { PlacedPage } from '../sql/events.ts'
import { SqlInbox } from '../sql/inbox.ts'
import type { InboxLimits } from '../sqlite-tables/storage.ts'
import { ObjectStore } from './store.ts'

export class ObjectInbox extends SqlInbox {
  readonly #store: ObjectStore

  constructor(host: InboxHost, storage: ObjectStorage, limits: InboxLimits) {
    const store = new ObjectStore(host, storage, limits)
    super(host, store, { handles: true, concurrency: limits.concurrency, isAlwaysOn: false })
    this.#store = store
  }

  /** Lists events with their ids. */
  page(query?: EventQuery): Promise<PlacedPage> {
    return this.events.page(checkQuery(query))
  }

  /** Handles the object's alarm. Resolves once the work that is due is done. */
  alarm(): Promise<void> {
    return this.#store.alarm.ring(() => this.hasClosed)
  }
}
