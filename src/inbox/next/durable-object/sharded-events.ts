import { checkQuery, eventStates, wrongCursor } from '../../operations/event-query.ts'
import type { EventOutcomes, EventPage, EventQuery, EventRecord, InboxEvents } from '../../reading.ts'
import type { PlacedPage } from '../sql/events.ts'
import type { Shards } from './shards.ts'
import { unpackPage, unpackRecord } from './wire.ts'

/** Cursor per object: '' at the start, null at the end. */
type Cursors = (string | null)[]

export class ShardedEvents implements InboxEvents {
  readonly states = eventStates
  readonly #shards: Shards

  constructor(shards: Shards) {
    this.#shards = shards
  }

  async list(query?: EventQuery): Promise<EventPage> {
    const { cursor, ...checked } = checkQuery(query)
    const { order, limit, mediaId } = checked
    const cursors = cursor === undefined ? this.#start(mediaId) : readCursors(cursor, this.#shards.all.length)
    const ask = async (shardCursor: string | null, shard: number) => {
      if (shardCursor === null) return undefined
      const input = shardCursor === '' ? checked : { ...checked, cursor: shardCursor }
      return unpackPage(await this.#shards.ask<PlacedPage>(shard, 'events', input))
    }
    const pages = await Promise.all(cursors.map(ask))
    const events = merge(pages, cursors, limit, order === 'oldest')
    return cursors.every((each) => each === null) ? { events } : { events, cursor: JSON.stringify(cursors) }
  }

  /** One object has all events of a media item. */
  #start(mediaId: string | undefined): Cursors {
    const only = mediaId === undefined ? undefined : this.#shards.of(mediaId)
    return this.#shards.all.map((shard) => (only === undefined || only === shard ? '' : null))
  }

  async get(key: string): Promise<EventRecord | undefined> {
    const answer = await this.#shards.find<EventRecord>('event', key)
    return answer && unpackRecord(answer.found)
  }

  async outcomes(keys: readonly string[]): Promise<EventOutcomes> {
    const answers = await this.#shards.askAll<(EventOutcomes[number] | null)[]>('outcomes', keys)
    return keys.map((_, place) => answers.find((answer) => answer[place])?.[place] ?? undefined)
  }

  async retryNow(key: string): Promise<boolean> {
    const answer = await this.#shards.find<EventRecord>('event', key)
    return answer !== undefined && this.#shards.ask(answer.shard, 'retryNow', key, false)
  }

  async stop(key: string): Promise<boolean> {
    const answer = await this.#shards.find<EventRecord>('event', key)
    return answer !== undefined && this.#shards.ask(answer.shard, 'stop', key, false)
  }

  async history(mediaId: string): Promise<readonly EventRecord[]> {
    const records = await this.#shards.ask<EventRecord[]>(this.#shards.of(mediaId), 'history', mediaId)
    return records.map(unpackRecord)
  }
}

/** Merges the objects' pages, advancing the cursors, up to the limit or the end of a page whose object has more. */
function merge(
  pages: readonly (PlacedPage | undefined)[],
  cursors: Cursors,
  limit: number,
  isOldestFirst: boolean,
): EventRecord[] {
  const events: EventRecord[] = []
  const left = pages.map((page) => [...(page?.found ?? [])])
  const isBefore = (a: EventRecord, b: EventRecord) =>
    (Number(a.receivedAt) - Number(b.receivedAt)) * (isOldestFirst ? 1 : -1) < 0
  /** Call at the end of an object's page. Returns true if the object may have more. */
  const hasMore = (shard: number): boolean => {
    cursors[shard] = pages[shard]?.cursor ?? null
    return cursors[shard] !== null
  }
  let isOver = left.map((page, shard) => page.length === 0 && hasMore(shard)).includes(true)
  while (!isOver && events.length < limit) {
    let next = -1
    for (const [shard, [head]] of left.entries()) {
      const best = left[next]?.[0]
      if (head !== undefined && (best === undefined || isBefore(head.record, best.record))) next = shard
    }
    const taken = left[next]?.shift()
    if (taken === undefined) break
    events.push(taken.record)
    cursors[next] = `${taken.id}`
    if (left[next]?.length === 0) isOver = hasMore(next)
  }
  return events
}

function readCursors(cursor: string, shards: number): Cursors {
  try {
    const cursors = JSON.parse(cursor)
    const isCursor = (each: unknown) => each === null || (typeof each === 'string' && /^\d*$/.test(each))
    if (Array.isArray(cursors) && cursors.length === shards && cursors.every(isCursor)) return cursors
  } catch {
    // Not JSON.
  }
  throw wrongCursor()
}
