import { ErrorCode, type IQueueBackend, type Job, type JobType, Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import { sha256 } from '#crypto'
import { WebhookError } from '../../errors.ts'
import type { MediaEvent } from '../../events/media-service/catalogue.ts'
import type { Logger } from '../../internal/logger.ts'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import { crypto } from '../../internal/realm.ts'
import { type ReachRedis, redisReach } from '../../internal/storage/reach-redis.ts'
import { within } from '../../internal/timers.ts'
import { checkConnection, type RedisConnection } from './check-connection.ts'
import { RedisClock } from './clock.ts'
import { connect } from './connection.ts'
import type { EventData, JobData, JobProgress } from './job.ts'
import { OwnKeys } from './own-keys.ts'
import { Refusals } from './refusals.ts'
import { handledMark } from './scripts.ts'

export const standardQueue = 'media-webhooks'

/** @throws WebhookError `invalid_option` */
export function checkQueue(by: string, connection: unknown, queue: unknown): void {
  checkConnection(by, connection)
  if (typeof queue !== 'string' || !/^[^:]+$/.test(queue))
    throw new WebhookError('invalid_option', `${by}: queue must be a name without a colon`)
}

export type EventJob = Job<JobData>

/** BullMQ 5 moves the waiting jobs of a paused queue to a list of their own. In BullMQ 6 that list is empty. */
export const waitingTypes = ['wait', 'paused'] as JobType[]

/** TTL of an unfinished event's key (ms). It ends with its job, unless another program removes the job. */
export const unfinishedTtlMs = 365 * 86_400_000

/** TTL of the lock on a dead letter (ms). */
const lockTtlMs = 10_000

/** Longest wait for Redis while closing (ms). */
export const disconnectMs = 1_000

// BullMQ retries only jobs with a number of attempts; the receiver's schedule decides when to stop.
const jobOptions = {
  attempts: 1_000_000_000,
  backoff: { type: 'custom' },
  stackTraceLimit: 1,
  removeOnComplete: true,
} as const

/**
 * The queue in Redis and the keys of its events. A job's id is a hash of the event's key, and BullMQ ignores an id it
 * already has, so an event has one job until it is handled or discarded. If a process crashes before it adds the job,
 * the sender's retry does. Then a key of ours remembers the event. A delivery repeated at that moment may add the job
 * again, so attempts check the key.
 */
export class EventQueue {
  readonly jobs: Queue<JobData>
  readonly client: Redis
  readonly own: OwnKeys
  readonly clock: RedisClock
  readonly refusals: Refusals
  readonly #reach: ReachRedis
  readonly #process = crypto.randomUUID().slice(0, 13)
  #tokens = 0

  /** @param logger absent: logs nothing, and writes nothing to Redis until something is added */
  constructor(name: string, connection: RedisConnection, timeoutMs: number, logger?: Logger) {
    this.client = connect(connection)
    this.own = new OwnKeys(this.client, name)
    let lastError: unknown
    this.client.on('error', (error) => {
      lastError = error
    })
    this.#reach = redisReach({ isReady: () => this.isReady, timeoutMs, lastError: () => lastError })
    this.jobs = new Queue(name, {
      connection: this.client,
      streams: { events: { maxLen: 1_000 } },
      skipMetasUpdate: logger === undefined,
    })
    this.jobs.on('error', () => {})
    this.clock = new RedisClock(this.client, logger)
    this.refusals = new Refusals(this.client, this.own, name, logger)
  }

  get isReady(): boolean {
    return this.client.status === 'ready'
  }

  /** Runs a step. Fails fast if Redis stays disconnected. */
  async reach<T>(step: (jobs: Queue<JobData>) => Promise<T>): Promise<T> {
    try {
      return await this.#reach(() => step(this.jobs))
    } catch (error) {
      this.refusals.note((error as Error).cause)
      throw error
    }
  }

  /** Adds the event unless its key is known. Returns `true` to a single caller, even if its steps are repeated. */
  async add(accepted: EventData): Promise<boolean> {
    const { key, type } = accepted.event
    const jobId = await hashKey(key)
    const token = this.#token()
    const parameters = [jobId, token, unfinishedTtlMs, await makeMember(jobId, accepted.event)]
    return this.reach(async (jobs) => {
      await this.refusals.checkRights()
      const first = await this.own.run<string>('remember', ...parameters)
      // The first caller may have crashed before it added the job.
      if (first !== handledMark) await jobs.add(type, accepted, { ...jobOptions, jobId })
      return first.endsWith(token)
    })
  }

  /** Adds a job that makes a receiver parse an unreadable delivery again. */
  async addUnreadable(data: JobData, key: string): Promise<void> {
    const jobId = `unreadable-${await hashKey(key)}`
    await this.reach((jobs) => jobs.add('unreadable', data, { ...jobOptions, jobId }))
  }

  async aheadMs(): Promise<number> {
    if (!this.clock.isKnown) await this.reach(() => this.clock.sync())
    return this.clock.aheadMs
  }

  #token(): string {
    return `${this.#process}-${(this.#tokens++).toString(36)}`
  }

  async find(key: string): Promise<EventJob | undefined> {
    const id = await hashKey(key)
    return this.reach((jobs) => jobs.getJob(id))
  }

  /** Returns `true` if the event was handled or discarded although its job has not ended. */
  async isHandled({ id }: EventJob): Promise<boolean> {
    return (await this.client.get(this.own.of(`key:${id}`))) === handledMark
  }

  /** Remembers an event as handled or discarded for `ms`. Call it before its job ends. */
  async end({ id }: EventJob, event: MediaEvent, ms: number): Promise<void> {
    await this.own.run('end', id as string, ms, await makeMember(id as string, event))
  }

  /** Records an event's progress in its job's data. What BullMQ calls progress is streamed to all listeners. */
  async record(job: EventJob, progress: JobProgress): Promise<void> {
    const before = job.data
    try {
      await job.updateData({ ...(before as EventData), progress })
    } catch (error) {
      // BullMQ has already set the data.
      job.data = before
      // Another program may have removed the job.
      if (!hasCode(error, ErrorCode.JobNotExist)) throw error
    }
  }

  /** Releases an active job by Redis time: processes must agree on when it is due. */
  async release({ id, token }: EventJob, delayMs: number): Promise<void> {
    await backendOf(this.jobs).moveToDelayed(id as string, this.clock.now(), delayMs, token, { skipAttempt: true })
  }

  /** Replays a dead letter. Returns `false` if another caller was first. */
  revive(job: EventJob): Promise<boolean> {
    return this.#locked(job, () => this.#move(() => job.retry('failed')))
  }

  /** Removes a dead letter and remembers it for `ms`. Returns `false` if another caller was first. */
  discard(job: EventJob, event: MediaEvent, ms: number): Promise<boolean> {
    return this.#locked(job, async () => {
      if (!(await this.reach(() => job.isFailed()))) return false
      await this.reach(() => this.end(job, event, ms))
      await this.reach(() => job.remove())
      return true
    })
  }

  /** Locks a dead letter: a discard takes BullMQ several steps, and a replay must not come in between. */
  async #locked({ id }: EventJob, change: () => Promise<boolean>): Promise<boolean> {
    const key = this.own.of(`changing:${id}`)
    const token = this.#token()
    const isFirst = await this.reach(
      async () =>
        (await this.client.set(key, token, 'PX', lockTtlMs, 'NX')) !== null || (await this.client.get(key)) === token,
    )
    if (!isFirst) return false
    try {
      return await change()
    } finally {
      // If this fails, the lock expires.
      await this.client.del(key).catch(() => {})
    }
  }

  /** Starts a retrying event's next attempt now. Returns `false` if the event is not waiting for one. */
  promote(job: EventJob): Promise<boolean> {
    return this.#move(() => job.promote())
  }

  /** Moves a job to another state. Returns `false` if it has already left its state. */
  async #move(step: () => Promise<void>): Promise<boolean> {
    try {
      await this.reach(step)
      return true
    } catch (error) {
      if (hasCode((error as Error).cause, ErrorCode.JobNotExist, ErrorCode.JobNotInState)) return false
      throw error
    }
  }

  async close(ms = disconnectMs): Promise<void> {
    if (!this.isReady) {
      // BullMQ 5 rejects, unhandled, if its first connection fails after the queue has closed.
      this.client.disconnect()
      await within(disconnectMs, this.jobs.waitUntilReady(), () => {}).catch(() => {})
    }
    // Redis answers QUIT after all earlier commands.
    const closed = this.jobs.close().then(() => this.client.quit())
    await within(ms, closed, () => {}).catch(() => {})
    this.client.disconnect()
  }
}

/** `job.moveToDelayed` would go by this process's clock. BullMQ 5 calls its backend `scripts`. */
const backendOf = (jobs: Queue): Pick<IQueueBackend, 'moveToDelayed'> =>
  'scripts' in jobs ? (jobs.scripts as IQueueBackend) : jobs.getBackend()

const hasCode = (error: unknown, ...codes: readonly ErrorCode[]): boolean =>
  codes.includes((error as { readonly code?: ErrorCode } | undefined)?.code as ErrorCode)

/** Maps ids or keys, 100 at a time, dropping `undefined`. */
export async function inBatches<T>(
  keys: readonly string[],
  step: (key: string) => Promise<T | undefined>,
): Promise<T[]> {
  const found: (T | undefined)[] = []
  for (let start = 0; start < keys.length; start += 100)
    found.push(...(await Promise.all(keys.slice(start, start + 100).map(step))))
  return found.filter((each) => each !== undefined)
}

/** Hashes any text as JSON, because UTF-8 would merge all lone surrogates. */
export const hashKey = (key: string): MaybePromise<string> => sha256(JSON.stringify(key))

/** The part of an index member shared by a media item's events. */
export const mediaPart = async (mediaId: string): Promise<string> => (await hashKey(mediaId)).slice(0, 16)

/** An event's member in the acceptance index: job id, media item and type. */
const makeMember = async (jobId: string, { mediaId, type }: MediaEvent): Promise<string> =>
  `${jobId}:${await mediaPart(mediaId)}:${type}`
