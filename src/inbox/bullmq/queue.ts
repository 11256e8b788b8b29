import { type Job, Queue } from 'bullmq'
import type { Redis, RedisOptions } from 'ioredis'
import { sha256 } from '#crypto'
import { WebhookError } from '../../errors.ts'
import { within } from '../../internal/timers.ts'
import { type ReachRedis, redisReach } from '../../storage/reach-redis.ts'
import { maxUnreadable } from '../engine/stored.ts'
import type { UnreadableDelivery } from '../reading.ts'
import { connect } from './connection.ts'
import { type EventData, type JobData, type JobProgress, progressOf, toUnreadableData } from './job.ts'
import {
  convertScript,
  countCrashScript,
  discardScript,
  handledMark,
  keepUnreadableScript,
  recordScript,
} from './scripts.ts'

/** The name of the queue, unless the user gives another one. */
export const standardQueue = 'media-webhooks'

/** @throws WebhookError `invalid_option` */
export function checkQueue(by: string, connection: unknown, queue: unknown): void {
  if (!(typeof connection === 'string' ? isAddress(connection) : typeof connection === 'object' && connection)) {
    const expected = 'a redis:// or rediss:// URL, or options for ioredis (is an environment variable unset?)'
    throw new WebhookError('invalid_option', `${by}: connection has to be ${expected}`)
  }
  if (typeof queue !== 'string' || !/^[^:]+$/.test(queue))
    throw new WebhookError('invalid_option', `${by}: queue has to be a name without a colon`)
}

// ioredis would take an empty text for localhost, and a URL of another scheme for the path of a socket.
const isAddress = (text: string): boolean => text !== '' && (/^rediss?:/i.test(text) || !text.includes('://'))

/** A BullMQ job that is an event, or an unreadable delivery. */
export type EventJob = Job<JobData>

/** The TTL of a dead letter's key, ten years: it is remembered until the dead letter is replayed or discarded. */
const deadLetterTtlMs = 10 * 365 * 86_400_000

/** Maximum time that closing waits for Redis, in ms. */
export const disconnectMs = 1_000

/** The job of an event that was added, or of the same event that was added before. */
interface Addition {
  readonly isNew: boolean
  readonly jobId: string
}

/** The result of a conversion. `known`: the event has another job, or was handled. `gone`: the job was removed. */
export type Conversion = 'gone' | 'converted' | 'known'

// The receiver's schedule says when to stop retrying. BullMQ retries a job only if it has a number of attempts.
export const jobOptions = {
  attempts: 1_000_000_000,
  backoff: { type: 'custom' },
  stackTraceLimit: 1,
  removeOnComplete: true,
} as const

/**
 * The queue in Redis, and its known events. BullMQ's deduplication key of an event holds the id of its job for as long
 * as the job exists. Once the event was handled, the key says so for as long as the event is remembered.
 */
export class EventQueue {
  readonly jobs: Queue<JobData>
  readonly client: Redis
  readonly #reach: ReachRedis
  // Ids are unique across processes: BullMQ treats a second job with the same id as a repetition of the first.
  readonly #idPrefix = crypto.randomUUID().replaceAll('-', '').slice(0, 20)
  #ids = 0

  /** @param skipMetasUpdate `true` writes nothing to Redis until something is added */
  constructor(name: string, connection: string | RedisOptions, timeoutMs: number, skipMetasUpdate = false) {
    this.client = connect(connection)
    this.#reach = redisReach({ isReady: () => this.isReady, timeoutMs })
    this.jobs = new Queue(name, { connection: this.client, streams: { events: { maxLen: 1_000 } }, skipMetasUpdate })
    this.jobs.on('error', () => {})
  }

  /** `true` if Redis is connected. */
  get isReady(): boolean {
    return this.client.status === 'ready'
  }

  /** Runs a step. The step fails if Redis stays disconnected, and does not wait longer. */
  reach<T>(step: (jobs: Queue<JobData>) => Promise<T>): Promise<T> {
    return this.#reach(() => step(this.jobs))
  }

  /**
   * Adds the event unless its key is known, in one script. The returned id shows which delivery was first, even if the
   * client repeats the script after a lost answer.
   */
  async add(accepted: EventData): Promise<Addition> {
    const id = await sha256(accepted.event.key)
    const jobId = this.#nextId()
    const options = { ...jobOptions, jobId, deduplication: { id } }
    const job = await this.reach((jobs) => jobs.add(accepted.event.type, accepted, options))
    return { isNew: job.id === jobId, jobId: job.id as string }
  }

  #nextId(): string {
    return `${this.#idPrefix}-${(this.#ids++).toString(36)}`
  }

  /** Adds an unreadable delivery to the dead letters, unless it is there. */
  async keepUnreadable(unreadable: UnreadableDelivery): Promise<void> {
    const data = await toUnreadableData(unreadable)
    const { key, unreadable: kept } = data
    const of = [this.#nextId(), await sha256(key), deadLetterTtlMs, JSON.stringify(data), JSON.stringify(jobOptions)]
    await this.reach(() => this.run(keepUnreadableScript, ...of, kept.reason, Date.now(), maxUnreadable))
  }

  /** Converts the job of an unreadable delivery into the job of its event. */
  async convert(job: EventJob, accepted: EventData): Promise<Conversion> {
    const { key, type } = accepted.event
    const id = await sha256(key)
    const of = [job.id as string, type, JSON.stringify(accepted), id]
    const conversion = await this.reach(() => this.run<Conversion>(convertScript, ...of))
    if (conversion === 'converted') Object.assign(job, { deduplicationId: id, data: accepted })
    return conversion
  }

  /** Runs a script. Its first parameter is the prefix of the queue's keys. */
  run<Result = number>(script: string, ...parameters: (string | number)[]): Promise<Result> {
    return this.client.eval(script, 0, this.jobs.toKey(''), ...parameters) as Promise<Result>
  }

  /** Finds the job of an unfinished event. */
  async find(key: string): Promise<EventJob | undefined> {
    const id = await sha256(key)
    return this.reach(async (jobs) => {
      const jobId = await this.client.get(this.#key(id))
      return jobId === null ? undefined : await jobs.getJob(jobId)
    })
  }

  /**
   * Remembers an event for `ms` from now on. Call it before the job ends: BullMQ deletes a key without a TTL with its
   * job.
   */
  async remember({ deduplicationId }: EventJob, ms: number): Promise<void> {
    await this.client.set(this.#key(deduplicationId as string), handledMark, 'PX', ms)
  }

  /** Remembers an event that becomes a dead letter. */
  async rememberDead({ id, deduplicationId }: EventJob): Promise<void> {
    await this.client.set(this.#key(deduplicationId as string), id as string, 'PX', deadLetterTtlMs)
  }

  /** Returns `true` if an event was handled although its job has not ended. */
  async wasHandled({ deduplicationId }: EventJob): Promise<boolean> {
    return (await this.client.get(this.#key(deduplicationId as string))) === handledMark
  }

  /**
   * Adds `count` to the number of processes that the event has ended, and returns the sum. The crash is counted before
   * the event is handled, since a crashed process cannot record it.
   */
  countCrash({ id }: EventJob, count: 1 | -1): Promise<number> {
    return this.run(countCrashScript, id as string, count)
  }

  /** Records the progress of an event, and deletes other fields of its job. */
  async record(job: EventJob, progress: JobProgress, ...deleted: readonly string[]): Promise<void> {
    await this.run(recordScript, job.id as string, JSON.stringify(progress), ...deleted)
    Object.assign(job, { progress })
  }

  /** Gives a replayed event as many attempts as a new one. */
  async startAfresh(job: EventJob): Promise<void> {
    const { completed, failedAttempts } = progressOf(job.progress)
    await this.record(job, { completed, failedAttempts }, 'atm', 'stc', 'cutOffs')
    Object.assign(job, { attemptsMade: 0, stalledCounter: 0 })
  }

  /** Passes a dead letter to the handlers again, with fresh attempts. Returns `false` if another caller was first. */
  revive(job: EventJob): Promise<boolean> {
    const retry = async () => {
      await this.client.hdel(this.jobs.toKey(job.id as string), 'stc', 'cutOffs')
      await job.retry('failed', { resetAttemptsMade: true })
    }
    return this.#move(retry, () => job.isFailed())
  }

  /** Starts the next attempt of an event immediately. Returns `false` if the event does not wait for one. */
  promote(job: EventJob): Promise<boolean> {
    return this.#move(
      () => job.promote(),
      () => job.isDelayed(),
    )
  }

  /** Moves a job to another state. Returns `false` if it has left its state already. */
  async #move(step: () => Promise<void>, isStillThere: () => Promise<boolean>): Promise<boolean> {
    try {
      await this.reach(step)
      return true
    } catch (error) {
      if (await this.reach(isStillThere)) throw error
      return false
    }
  }

  /**
   * Removes a dead letter, and remembers it for `ms`, or not at all for 0. Returns `false` if another caller was first.
   */
  async discard({ id, deduplicationId }: EventJob, ms: number): Promise<boolean> {
    return (await this.reach(() => this.run(discardScript, id as string, deduplicationId as string, ms))) === 1
  }

  #key(deduplicationId: string): string {
    return this.jobs.toKey(`de:${deduplicationId}`)
  }

  /** Closes the connection. It waits up to `ms` for Redis. */
  async close(ms = disconnectMs): Promise<void> {
    // Redis answers QUIT after all earlier commands.
    const closed = this.jobs.close().then(() => this.client.quit())
    await within(ms, closed, () => {}).catch(() => {})
    this.client.disconnect()
  }
}
