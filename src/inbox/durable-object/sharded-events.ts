import { checkQuery, eventStates, wrongCursor } from '../operations/event-query.ts'
import type { EventOutcomes, EventPage, EventQuery, EventRecord, InboxEvents } from '../reading.ts'
import type { PlacedPage } from '../sql/events.ts'
import type { Shards } from './shards.ts'
import { unpack } from './wire.ts'

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
      return this.#shards.ask<PlacedPage>(shard, 'events', input)
    }
    const pages = await Promise.all(cursors.map(ask))
    const events = merge(pages, cursors, limit, order === 'oldest' ? 1 : -1)
    return cursors.every((each) => each === null) ? { events } : { events, cursor: JSON.stringify(cursors) }
  }

  /** One object has all events of a media item. */
  #start(mediaId: string | undefined): Cursors {
    const only = mediaId === undefined ? undefined : this.#shards.of(mediaId)
    return this.#shards.all.map((shard) => (only === undefined || only === shard ? '' : null))
  }

  async get(key: string): Promise<EventRecord | undefined> {
    return (await this.#shards.find<EventRecord>('event', key))?.item
  }

  async outcomes(keys: readonly string[]): Promise<EventOutcomes> {
    const answers = await this.#shards.askAll<(EventOutcomes[number] | null)[]>('outcomes', keys)
    return keys.map((_, place) => answers.find((answer) => answer[place])?.[place] ?? undefined)
  }

  retryNow(key: string): Promise<boolean> {
    return this.#shards.change('event', key, 'retryNow')
  }

  stop(key: string): Promise<boolean> {
    return this.#shards.change('event', key, 'stop')
  }

  async history(mediaId: string): Promise<readonly EventRecord[]> {
    const records = await this.#shards.ask<EventRecord[]>(this.#shards.of(mediaId), 'history', mediaId)
    return records.map(unpack)
  }
}

/** Merges the objects' pages, advancing the cursors, up to the limit or the end of a page whose object has more. */
function merge(
  pages: readonly (PlacedPage | undefined)[],
  cursors: Cursors,
  limit: number,
  direction: 1 | -1,
): EventRecord[] {
  const events: EventRecord[] = []
  /** Call at the end of an object's page. Returns true if the object may have more. */
  const hasMore = (shard: number): boolean => {
    cursors[shard] = pages[shard]?.cursor ?? null
    return cursors[shard] !== null
  }
  const placed = pages.flatMap((page, shard) => {
    let at = Number.NEGATIVE_INFINITY
    return (page?.found ?? []).map(({ id, record: wire }, index, { length }) => {
      const record = unpack(wire)
      // Each object's order stays, even where it isn't the order of arrival.
      at = Math.max(at, direction * record.receivedAt.getTime())
      return { shard, id, record, at, isLast: index === length - 1 }
    })
  })
  const empty = pages.flatMap((page, shard) => (page?.found.length ? [] : [shard]))
  if (empty.map(hasMore).includes(true)) return events
  for (const { shard, id, record, isLast } of placed.sort((a, b) => a.at - b.at)) {
    events.push(record)
    cursors[shard] = `${id}`
    if ((isLast && hasMore(shard)) || events.length === limit) break
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
