import { type Job, Queue } from 'bullmq'
import type { Redis, RedisOptions } from 'ioredis'
import { sha256 } from '#crypto'
import { type ReachRedis, redisReach } from '../../internal/reach-redis.ts'
import type { Acceptance, AcceptedEvent, RefusedDelivery } from '../inbox.ts'
import { connect } from './connect.ts'
import { dataOf, type EventData } from './event.ts'
import { type RefusedData, refusedDataOf } from './refused.ts'
import { becomeScript, discardScript, handledMark, refuseScript } from './scripts.ts'

/** What the jobs of the queue hold; others may have added something else. */
export type JobData = EventData | RefusedData
/** A BullMQ job that is an event, or a refused delivery. */
export type EventJob = Job<JobData>

/** A dead letter is known until it has been replayed or discarded. */
const asLongAsItIsDeadMs = 10 * 365 * 86_400_000

/** How many refused deliveries are kept, the newest. */
const maxRefused = 1_000

const became = ['gone', 'event', 'known'] as const
/** `known`: the event has another job, or was handled. `gone`: there is no such job any more. */
export type Became = (typeof became)[number]

// An inbox retries by the receiver's schedule, which says when to stop; BullMQ has none without a number of attempts.
const jobOptions = {
  attempts: 1_000_000_000,
  backoff: { type: 'custom' },
  stackTraceLimit: 1,
  removeOnComplete: true,
} as const

/**
 * The queue in Redis, and which events it knows: BullMQ's deduplication key of an event holds the id of its job, without
 * an end for as long as the job exists. Once the event was handled it says so, for as long as it is remembered.
 */
export class EventQueue {
  readonly jobs: Queue<JobData>
  readonly client: Redis
  readonly #reach: ReachRedis
  // No two jobs may ever share an id: one that comes second is taken for a repetition of the first.
  readonly #idPrefix = crypto.randomUUID().replaceAll('-', '').slice(0, 20)
  #ids = 0

  constructor(name: string, connection: string | RedisOptions, timeoutMs: number) {
    this.client = connect(connection)
    this.#reach = redisReach(this.client, () => this.client.status === 'ready', timeoutMs)
    this.jobs = new Queue(name, { connection: this.client, streams: { events: { maxLen: 1_000 } } })
    this.jobs.on('error', () => {})
  }

  /** Runs a step that is to fail, and not to wait, while Redis is gone. */
  reach<T>(step: (jobs: Queue<JobData>) => Promise<T>): Promise<T> {
    return this.#reach(() => step(this.jobs))
  }

  /**
   * Adds the event unless its key is known, in one script. The id tells who won, also where the client sends the script
   * again because its answer was lost.
   */
  async add(accepted: AcceptedEvent): Promise<Acceptance> {
    const id = await sha256(accepted.event.key)
    const jobId = this.#nextId()
    const options = { ...jobOptions, jobId, deduplication: { id } }
    const job = await this.reach((jobs) => jobs.add(accepted.event.type, dataOf(accepted), options))
    return job.id === jobId ? 'accepted' : 'duplicate'
  }

  #nextId(): string {
    return `${this.#idPrefix}-${(this.#ids++).toString(36)}`
  }

  /** Adds a refused delivery to the dead letters, unless it is there. */
  async refuse(refused: RefusedDelivery): Promise<void> {
    const data = await refusedDataOf(refused)
    const { key, refused: kept } = data
    const of = [this.#nextId(), await sha256(key), asLongAsItIsDeadMs, JSON.stringify(data), JSON.stringify(jobOptions)]
    await this.reach(() => this.#run(refuseScript, ...of, kept.reason, Date.now(), maxRefused))
  }

  /** Makes the job of a refused delivery that of its event. */
  async become(job: EventJob, accepted: AcceptedEvent): Promise<Became> {
    const { key, type } = accepted.event
    const id = await sha256(key)
    const of = [job.id as string, type, JSON.stringify(dataOf(accepted)), id]
    const outcome = became[await this.reach(() => this.#run(becomeScript, ...of))] as Became
    if (outcome === 'event') job.deduplicationId = id
    return outcome
  }

  async #run(script: string, ...parameters: (string | number)[]): Promise<number> {
    return Number(await this.client.eval(script, 0, this.jobs.toKey(''), ...parameters))
  }

  /** The job of an event that has not been handled. */
  async find(key: string): Promise<EventJob | undefined> {
    const id = await sha256(key)
    return this.reach(async (jobs) => {
      const jobId = await this.client.get(this.#key(id))
      return jobId === null ? undefined : await jobs.getJob(jobId)
    })
  }

  /** Keeps an event known for `ms` from now. Before its job ends: BullMQ forgets one without an end with its job. */
  async remember({ deduplicationId }: EventJob, ms: number): Promise<void> {
    await this.client.set(this.#key(deduplicationId as string), handledMark, 'PX', ms)
  }

  /** Keeps an event known that becomes a dead letter. */
  async rememberDead({ id, deduplicationId }: EventJob): Promise<void> {
    await this.client.set(this.#key(deduplicationId as string), id as string, 'PX', asLongAsItIsDeadMs)
  }

  /** Whether an event was handled, though its job has not ended. */
  async wasHandled({ deduplicationId }: EventJob): Promise<boolean> {
    return (await this.client.get(this.#key(deduplicationId as string))) === handledMark
  }

  /** Hands a dead letter to the handlers again, with fresh attempts. `false`: somebody else was first. */
  async revive(job: EventJob): Promise<boolean> {
    try {
      await this.reach(async (jobs) => {
        await this.client.hdel(jobs.toKey(job.id as string), 'stc')
        await job.retry('failed', { resetAttemptsMade: true })
      })
      return true
    } catch (error) {
      if (await this.reach(() => job.isFailed())) throw error
      return false
    }
  }

  /** Removes a dead letter, and remembers it for `ms`, or not at all. `false`: somebody else was first. */
  async discard({ id, deduplicationId }: EventJob, ms: number): Promise<boolean> {
    return (await this.reach(() => this.#run(discardScript, id as string, deduplicationId as string, ms))) === 1
  }

  #key(deduplicationId: string): string {
    return this.jobs.toKey(`de:${deduplicationId}`)
  }

  async close(): Promise<void> {
    await this.jobs.close()
    // After what has been sent was answered.
    await this.client.quit()
  }
}
