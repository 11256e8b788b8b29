import { WebhookError } from '../../errors.ts'
import { namedEvents } from '../../inbox/operations/operations.ts'
import { ReplayedEvents } from '../../inbox/operations/replay-outcome.ts'
import type { ReadableInbox } from '../../inbox/reading.ts'
import { sleep } from '../../internal/timers.ts'
import type { Searched } from '../reading/titled.ts'
import { type Act, keysOf, type Selection } from './selection.ts'

/** An action on events, which runs in this process. */
export interface Job {
  readonly id: string
  readonly act: Act
  readonly startedAt: Date
  /** `failed`: the inbox became unavailable. */
  readonly state: 'running' | 'done' | 'stopped' | 'failed'
  /** `undefined` until the events are listed. */
  readonly total: number | undefined
  readonly done: number
  /** The keys of the first events that were acted on, as many as are stored with the operation. */
  readonly keys: readonly string[]
  /** The events of a replay. Absent for other actions, for older replays, and if the inbox cannot list its events. */
  readonly replayed: ReplayedEvents | undefined
  /**
   * The number of events that another user or process has replayed, discarded or retried, or that were handled
   * meanwhile.
   */
  readonly gone: number
  /** The number of those that were left as they are, by reason. */
  readonly kept: ReadonlyMap<string, number>
  readonly error?: unknown
}

type RunningJob = { -readonly [Name in keyof Job]: Job[Name] } & {
  kept: Map<string, number>
  keys: string[]
  isStopping: boolean
}

/** Number of jobs whose replayed events are followed: the newest. */
const followedJobs = 5

/** The number of jobs that are remembered. */
const rememberedJobs = 100

/**
 * Maximum number of events that are replayed or retried in a second, so that what failed under load does not fail
 * again.
 */
const perSecond = 100

/** The pause before a full inbox is asked again, in ms. */
const delayMs = 500

/** Runs actions on many events, one event after another, and remembers their results. */
export class Jobs {
  readonly #searched: Searched & Pick<ReadableInbox, 'operations'>
  readonly #changed: () => void
  readonly #jobs = new Map<string, RunningJob>()

  /** @param changed called when a job has changed dead letters */
  constructor(searched: Searched & Pick<ReadableInbox, 'operations'>, changed: () => void) {
    this.#searched = searched
    this.#changed = changed
  }

  get(id: string): Job | undefined {
    return this.#jobs.get(id)
  }

  /** The newest first. */
  running(): readonly Job[] {
    return [...this.#jobs.values()].filter(({ state }) => state === 'running').reverse()
  }

  /** Stops a job before its next event. */
  stop(id: string): void {
    const job = this.#jobs.get(id)
    if (job !== undefined) job.isStopping = true
  }

  /** Starts a job. The promise resolves when it has ended, and never rejects. */
  start(act: Act, selection: Selection): { readonly job: Job; readonly ended: Promise<void> } {
    const id = crypto.randomUUID()
    const { operations } = this.#searched
    const { events } = this.#searched.inbox
    const replayed = act === 'replay' && events ? new ReplayedEvents({ events, operations }) : undefined
    const counts = { total: undefined, done: 0, keys: [], gone: 0, kept: new Map() }
    const job: RunningJob = { id, act, startedAt: new Date(), state: 'running', isStopping: false, replayed, ...counts }
    // Their keys take memory.
    for (const older of [...this.#jobs.values()].slice(0, -followedJobs)) older.replayed = undefined
    this.#jobs.set(id, job)
    const oldest = [...this.#jobs.values()].find(({ state }) => state !== 'running')
    if (this.#jobs.size > rememberedJobs && oldest !== undefined) this.#jobs.delete(oldest.id)
    return { job, ended: this.#run(job, selection) }
  }

  async #run(job: RunningJob, selection: Selection): Promise<void> {
    try {
      const keys = await keysOf(this.#searched, job.act, selection)
      job.total = keys.length
      const startedAt = performance.now()
      for (const [index, key] of keys.entries()) {
        if (job.act !== 'discard') await sleep(startedAt + (index * 1_000) / perSecond - performance.now())
        // Others get a turn between the steps of an inbox that answers without waiting.
        else if (index % 100 === 99) await sleep(1)
        if (job.isStopping) break
        await this.#take(job, key)
      }
      job.state = job.isStopping && job.done + job.gone + keptBy(job) < keys.length ? 'stopped' : 'done'
    } catch (error) {
      job.state = 'failed'
      job.error = error
    } finally {
      this.#changed()
    }
  }

  /** Acts on one event. While the inbox is full it waits. */
  async #take(job: RunningJob, key: string): Promise<void> {
    while (!job.isStopping) {
      try {
        if (await this.#act(job.act, key)) {
          job.done++
          if (job.keys.length < namedEvents) job.keys.push(key)
          job.replayed?.add(key)
        } else job.gone++
        return
      } catch (error) {
        const { code, message } = error as Partial<WebhookError>
        if (!(error instanceof WebhookError) || !(code === 'overloaded' || isAboutTheEvent(code))) throw error
        if (isAboutTheEvent(code)) return void job.kept.set(`${message}`, (job.kept.get(`${message}`) ?? 0) + 1)
        await sleep(delayMs)
      }
    }
  }

  async #act(act: Act, key: string): Promise<boolean> {
    const { deadLetters, events } = this.#searched.inbox
    if (act === 'retry') return (await events?.retryNow(key)) ?? false
    if (act === 'stop-handler') return (await events?.stop?.(key)) ?? false
    return deadLetters[act](key)
  }
}

/** Counts the events that a job has left as they are. */
export const keptBy = ({ kept }: Pick<Job, 'kept'>): number => [...kept.values()].reduce((sum, count) => sum + count, 0)

const isAboutTheEvent = (code: string | undefined): boolean => code === 'malformed' || code === 'in_progress'
