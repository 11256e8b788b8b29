import { type CheckedQuery, checkQuery, matchesQuery, type Place, readPlace } from '../operations/event-query.ts'
import type { EventPage, EventQuery, EventRecord, InboxEvents } from '../reading.ts'
import { type JobRow, toRecord } from './job.ts'
import type { EventQueue } from './queue.ts'
import { readScript, selectScript } from './scripts.ts'

/** The number of jobs that one step in Redis examines. Other steps wait for it for a few ms only. */
const batchSize = 1_000

/** The place where BullMQ keeps the ids of the jobs in each state. */
const sets = { waiting: 'wait', running: 'active', retrying: 'delayed', dead: 'failed' } as const

const states = Object.keys(sets) as (keyof typeof sets)[]

/**
 * The events of the queue. BullMQ has no order by acceptance, and no index by media item. So for each page Redis
 * examines all the jobs in the requested states, a thousand in a step, and the inbox reads only the jobs of the page.
 * This takes about half a second for 100,000 jobs. Their ids are in memory meanwhile.
 */
export class BullmqEvents implements InboxEvents {
  readonly states = states
  /** Absent without handlers: no other process hears of it. */
  readonly stop?: (key: string) => boolean
  readonly #queue: EventQueue

  /** @param stop stops a handler of this process */
  constructor(queue: EventQueue, stop?: (key: string) => boolean) {
    this.#queue = queue
    if (stop !== undefined) this.stop = stop
  }

  async list(query?: EventQuery): Promise<EventPage> {
    const checked = checkQuery(query)
    const { limit } = checked
    const found = await this.#find(checked)
    const page = found.slice(0, limit)
    // Some events may have ended or changed their state since they were found.
    const records = await this.#read(page.map(([, id]) => id))
    const events = records.filter((record) => matchesQuery(record, checked))
    const last = page.at(-1)
    return found.length > limit && last !== undefined ? { events, cursor: last.join(' ') } : { events }
  }

  async get(key: string): Promise<EventRecord | undefined> {
    const job = await this.#queue.find(key)
    const [record] = await this.#read(job?.id === undefined ? [] : [job.id])
    return record
  }

  async retryNow(key: string): Promise<boolean> {
    const job = await this.#queue.find(key)
    return job !== undefined && (await this.#queue.promote(job))
  }

  /** Finds the jobs of a page, and the first one after it. The place of a job is its time of acceptance, and its id. */
  async #find({ state, type = '', mediaId, order, limit, cursor }: CheckedQuery): Promise<readonly Place[]> {
    const after = cursor === undefined ? undefined : readPlace(cursor)
    const sign = order === 'oldest' ? 1 : -1
    const byOrder = (a: Place, b: Place) => sign * compare(a, b)
    const part = mediaId === undefined ? '' : `"mediaId":${JSON.stringify(mediaId)}`
    const ids = await this.#ids(state)
    let found: Place[] = []
    for (let start = 0; start < ids.length; start += batchSize) {
      const batch = ids.slice(start, start + batchSize)
      const selected = await this.#queue.reach(() => this.#queue.run<string[]>(selectScript, type, part, ...batch))
      found.push(...placesOf(selected).filter((place) => after === undefined || byOrder(place, after) > 0))
      found = found.sort(byOrder).slice(0, limit + 1)
    }
    return found
  }

  /** Lists the ids of the jobs in one state or in all, as they are at one moment, so that no event is missed. */
  async #ids(state: EventQuery['state']): Promise<readonly string[]> {
    const asked = states.filter((each) => state === undefined || each === state)
    if (asked.length === 0) return []
    const answers = await this.#queue.reach((jobs) => {
      const read = this.#queue.client.multi()
      for (const each of asked) {
        const key = jobs.toKey(sets[each])
        if (each === 'waiting' || each === 'running') read.lrange(key, 0, -1)
        else read.zrange(key, '0', '-1')
      }
      return read.exec()
    })
    return (answers ?? []).flatMap(([error, ids]) => {
      if (error !== null) throw error
      return ids as string[]
    })
  }

  /** Reads events. It leaves out removed jobs, and jobs without an event. */
  async #read(ids: readonly string[]): Promise<readonly EventRecord[]> {
    const records: EventRecord[] = []
    for (let start = 0; start < ids.length; start += batchSize) {
      const batch = ids.slice(start, start + batchSize)
      const rows = await this.#queue.reach(() => this.#queue.run<JobRow[]>(readScript, ...batch))
      records.push(...rows.flatMap((row) => toRecord(row) ?? []))
    }
    return records
  }
}

const compare = ([at, id]: Place, [otherAt, otherId]: Place): number =>
  // The ids of one process end in a growing number, so later ids can be longer.
  at - otherAt || id.length - otherId.length || (id < otherId ? -1 : id > otherId ? 1 : 0)

function placesOf(selected: readonly string[]): Place[] {
  const places: Place[] = []
  for (let i = 0; i < selected.length; i += 2) places.push([Number(selected[i + 1]), selected[i] as string])
  return places
}
