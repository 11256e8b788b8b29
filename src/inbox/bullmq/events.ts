import type { JobType } from 'bullmq'
import { type CheckedQuery, checkQuery, matchesQuery, wrongCursor } from '../operations/event-query.ts'
import type { EventOutcomes, EventPage, EventQuery, EventRecord, EventState, InboxEvents } from '../reading.ts'
import { toRecord } from './job.ts'
import { withScores } from './own-keys.ts'
import { pauseStorage } from './pauses.ts'
import { type EventQueue, hashKey, inBatches, mediaPart, waitingTypes } from './queue.ts'
import type { BullmqWorker } from './worker.ts'

/** Index entries read per Redis command. */
const scanBatch = 1_000

const jobTypes: Readonly<Record<'waiting' | 'running' | 'retrying' | 'dead', JobType[]>> = {
  waiting: waitingTypes,
  running: ['active'],
  // While its handlers are paused, a retrying event is briefly active whenever a worker takes and releases it.
  retrying: ['delayed', 'active'],
  dead: ['failed'],
}

const states = Object.keys(jobTypes) as (keyof typeof jobTypes)[]

/** An index entry: the job id of an event, and its number in order of acceptance. */
interface IndexEntry {
  readonly number: number
  readonly id: string
}

/**
 * Lists the events of the queue. BullMQ has neither an order of acceptance nor an index by media item, so we keep a
 * sorted set of number, media item and type. A page scans that index in batches and fetches only the jobs it returns.
 */
export class BullmqEvents implements InboxEvents {
  readonly states = states
  /** Absent in a process without handlers: it cannot reach those of other processes. */
  readonly stop?: (key: string) => boolean
  readonly #queue: EventQueue
  readonly #worker: Pick<BullmqWorker, 'running'> | undefined

  /** @param worker absent in a process without handlers */
  constructor(queue: EventQueue, worker?: Pick<BullmqWorker, 'running' | 'stop'>) {
    this.#queue = queue
    this.#worker = worker
    if (worker !== undefined) this.stop = (key) => worker.stop(key)
  }

  async list(query?: EventQuery): Promise<EventPage> {
    const checked = checkQuery(query)
    const { limit } = checked
    const found = await this.#find(checked)
    const page = found.slice(0, limit)
    const last = page.at(-1)
    // Events may have ended or changed state since the scan.
    const events = (await this.#read(page.map(({ id }) => id))).filter((record) => matchesQuery(record, checked))
    return found.length > limit && last !== undefined ? { events, cursor: `${last.number}` } : { events }
  }

  async get(key: string): Promise<EventRecord | undefined> {
    const [record] = await this.#read([await hashKey(key)])
    return record
  }

  outcomes(keys: readonly string[]): Promise<EventOutcomes> {
    const readOutcome = async (key: string) => {
      const job = this.#queue.jobs.toKey(await hashKey(key))
      const [addedAt, diedAt] = await this.#queue.client.hmget(job, 'timestamp', 'finishedOn')
      return addedAt ? (diedAt ? 'dead' : 'open') : undefined
    }
    return this.#queue.reach(() => Promise.all(keys.map(readOutcome)))
  }

  async retryNow(key: string): Promise<boolean> {
    const job = await this.#queue.find(key)
    return job !== undefined && (await this.#queue.promote(job))
  }

  /** Finds a page of events, plus one to tell whether more follow. */
  async #find({ state, type, mediaId, order, limit, cursor }: CheckedQuery): Promise<readonly IndexEntry[]> {
    if (cursor !== undefined && !/^\d+$/.test(cursor)) throw wrongCursor()
    const media = mediaId === undefined ? undefined : await mediaPart(mediaId)
    const inState = state && (await this.#idsIn(state))
    const found: IndexEntry[] = []
    let after = cursor
    for (;;) {
      const batch = await this.#scan(order, after)
      for (const [member, number] of batch) {
        const [id = '', ofMedia, ...ofType] = member.split(':')
        if (media !== undefined && media !== ofMedia) continue
        if (type !== undefined && type !== ofType.join(':')) continue
        if (inState?.has(id) === false) continue
        if (found.push({ number: Number(number), id }) > limit) return found
      }
      if (batch.length < scanBatch) return found
      after = batch.at(-1)?.[1]
    }
  }

  /** Returns a snapshot of the job ids in a state. */
  async #idsIn(state: EventState): Promise<ReadonlySet<string>> {
    if (state === 'handled') return new Set()
    return new Set(await this.#queue.reach((jobs) => jobs.getRanges(jobTypes[state], 0, -1)))
  }

  /** Reads a batch of index members with their numbers. */
  async #scan(order: CheckedQuery['order'], after: string | undefined): Promise<readonly [string, string][]> {
    const { client, own } = this.#queue
    const limit = ['LIMIT', 0, scanBatch] as const
    const found = await this.#queue.reach(() =>
      order === 'oldest'
        ? client.zrangebyscore(own.of('events'), `(${after ?? 0}`, '+inf', 'WITHSCORES', ...limit)
        : client.zrevrangebyscore(own.of('events'), `(${after ?? '+inf'}`, '-inf', 'WITHSCORES', ...limit),
    )
    return withScores(found)
  }

  /** Reads events. Skips removed jobs. */
  async #read(ids: readonly string[]): Promise<readonly EventRecord[]> {
    if (ids.length === 0) return []
    const [active, pauses] = await Promise.all([this.#idsIn('running'), pauseStorage(this.#queue).list()])
    return inBatches(ids, async (id) => {
      const job = await this.#queue.reach((jobs) => jobs.getJob(id))
      return job && toRecord(job, active.has(id) ? { run: this.#worker?.running.get(id)?.run, pauses } : undefined)
    })
  }

  /** Counts active jobs that only wait to be released, because their handlers are paused. */
  async countHeld(): Promise<number> {
    const isPaused = (await pauseStorage(this.#queue).list()).some(({ handler }) => handler !== undefined)
    const active = isPaused ? await this.#read([...(await this.#idsIn('running'))]) : []
    return active.filter(({ state }) => state === 'retrying').length
  }
}
