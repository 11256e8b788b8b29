import { sha256 } from '#crypto'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import type { NewOperation, Operation, OperationQuery, Operations } from '../reading.ts'
import { limitOf } from './page.ts'

/** Number of operations that are kept, and of events that one names. */
export const keptOperations = 500
export const namedEvents = 500

/** The stored operations, each as JSON. */
export interface OperationStorage {
  /**
   * Adds an operation, and drops the oldest beyond `keptOperations`.
   * @param events the short ids of its events, between spaces
   */
  add(operation: string, events: string): MaybePromise<void>
  /** Lists the newest first. @param event a short id between spaces, or an empty text for all */
  list(limit: number, event: string): MaybePromise<readonly string[]>
}

/** Names an event in 8 hex digits. */
export const shortId = async (key: string): Promise<string> => (await sha256(key)).slice(0, 8)

/** A stored operation, and its events as {@link OperationStorage} takes them. */
type Entry = readonly [operation: string, events: string]

/** Finds the operations on an event, for a storage that cannot search. */
export const operationsIn = (entries: readonly Entry[], limit: number, event: string): readonly string[] =>
  entries.flatMap(([operation, events]) => (events.includes(event) ? [operation] : [])).slice(0, limit)

/** Revives an operation that went through JSON. */
export const reviveOperation = (operation: Operation): Operation => ({ ...operation, at: new Date(operation.at) })

/** Keeps operations in this process, for an inbox that stores none. */
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

/** What operators did to an inbox. */
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
    const found = await this.#storage.list(limitOf('operations', limit), event)
    return found.map((text) => reviveOperation(JSON.parse(text)))
  }
}
