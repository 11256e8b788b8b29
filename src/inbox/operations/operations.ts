import { sha256 } from '#crypto'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import type { NewOperation, Operation, OperationQuery, Operations } from '../reading.ts'
import { checkLimit } from './page.ts'

/** Operations kept, and events recorded per operation. */
export const keptOperations = 500
export const namedEvents = 500

export interface OperationStorage {
  /** Drops the oldest beyond `keptOperations`. @param events short ids, each between spaces */
  add(operation: string, events: string): MaybePromise<void>
  /** Newest first. @param event a short id between spaces, or `''` for all */
  list(limit: number, event: string): MaybePromise<readonly string[]>
}

/** The first 8 hex digits of the SHA-256 of a key. */
export const shortId = async (key: string): Promise<string> => (await sha256(key)).slice(0, 8)

/** An operation and its events, as {@link OperationStorage} stores them. */
type Entry = readonly [operation: string, events: string]

/** Filters by event, for storages without a search. */
export const operationsIn = (entries: readonly Entry[], limit: number, event: string): readonly string[] =>
  entries.flatMap(([operation, events]) => (events.includes(event) ? [operation] : [])).slice(0, limit)

/** Restores the `Date` that JSON turned into a string. */
export const reviveOperation = (operation: Operation): Operation => ({ ...operation, at: new Date(operation.at) })

/** In-memory storage, for inboxes that persist no operations. */
export function operationsHere(): OperationStorage {
  const kept: Entry[] = []
  return {
    add(operation, events) {
      kept.unshift([operation, events])
      kept.splice(keptOperations)
    },
    list: (limit, event) => operationsIn(kept, limit, event),
  }
}

/** What operators did: replays, discards, pauses. */
export class StoredOperations implements Operations {
  readonly #storage: OperationStorage

  constructor(storage: OperationStorage) {
    this.#storage = storage
  }

  async add({ keys, ...operation }: NewOperation): Promise<void> {
    const events = await Promise.all((keys ?? []).slice(0, namedEvents).map(shortId))
    const stored = { at: new Date(), count: keys?.length, ...operation }
    await this.#storage.add(JSON.stringify(stored), ` ${events.join(' ')} `)
  }

  async list({ key, limit }: OperationQuery = {}): Promise<readonly Operation[]> {
    const event = key === undefined ? '' : ` ${await shortId(key)} `
    const found = await this.#storage.list(checkLimit('operations', limit), event)
    return found.map((text) => reviveOperation(JSON.parse(text)))
  }
}
