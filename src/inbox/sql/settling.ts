import { measure } from '../../internal/maybe-promise.ts'
import { OutageLog } from '../../internal/outage-log.ts'
import { later, sleep } from '../../internal/timers.ts'
import type { InboxHost } from '../inbox.ts'
import type { Database } from './database.ts'
import type { HeldLane } from './lane.ts'

/** Lanes per settle, and settles in flight: while one waits for the disk, the next is prepared. */
const maxLanes = 500
const maxInFlight = 2

/** Ends that may be unrecorded before nothing starts any more: a crash would repeat the effects of all of them. */
export const maxUnrecorded = 64

/** Delay before a failed settle is repeated: the first, and the maximum if the database refuses it (ms). */
const firstDelayMs = 100
const maxDelayMs = 10_000

export interface SettlingOptions {
  readonly database: Pick<Database, 'run' | 'steps' | 'failure'>
  readonly host: Pick<InboxHost, 'logger' | 'measured'>
  /** Called when a lane has been released. `readyInMs`: when it can be claimed again. */
  readonly released: (lane: HeldLane, readyInMs: number) => void
  /** Called when a settle finds that a lane is not ours any more. */
  readonly lost: (lane: HeldLane) => void
  /** Called after each answer. */
  readonly answered: () => void
}

type Sent = readonly (readonly [HeldLane, ReturnType<HeldLane['unsettled']>])[]

/** Records ends of attempts and releases lanes, many in one step, until it works: a lost end repeats its handlers. */
export class Settling {
  readonly #options: SettlingOptions
  readonly #outage = new OutageLog()
  readonly #dirty = new Set<HeldLane>()
  #inFlight = 0
  #isScheduled = false
  #failures = 0
  /** Lanes per settle. 1 after the database refused one: a single lane may be the reason. */
  #batch = maxLanes
  #onIdle: (() => void) | undefined
  #isStopped = false

  constructor(options: SettlingOptions) {
    this.#options = options
  }

  /** Settles what a lane has to tell, at the end of this event-loop turn at the earliest. */
  add(lane: HeldLane): void {
    if (!lane.isDirty) return
    this.#dirty.add(lane)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled || this.#inFlight >= maxInFlight || this.#dirty.size === 0) return
    this.#isScheduled = true
    later(() => {
      this.#isScheduled = false
      void this.#settle()
    })
  }

  /** Sends what is ready, in this call. */
  flush(): void {
    void this.#settle()
  }

  /** Takes lanes of one owner, of which no settle is in flight. */
  #take(): readonly HeldLane[] {
    const taken: HeldLane[] = []
    for (const lane of this.#dirty) {
      if (lane.isInFlight || (taken[0] !== undefined && taken[0].owner !== lane.owner)) continue
      this.#dirty.delete(lane)
      if (lane.state === 'lost' || !lane.isDirty) continue
      taken.push(lane)
      if (taken.length >= this.#batch) break
    }
    return taken
  }

  async #settle(): Promise<void> {
    const taken = this.#take()
    const [first] = taken
    if (first === undefined) return this.#checkIdle()
    this.#inFlight++
    for (const lane of taken) lane.isInFlight = true
    this.#schedule()
    try {
      await this.#send(first.owner, taken)
    } catch (error) {
      await this.#failed(error, taken)
    } finally {
      this.#inFlight--
      for (const lane of taken) {
        lane.isInFlight = false
        if (lane.state !== 'lost' && lane.isDirty) this.#dirty.add(lane)
      }
      this.#schedule()
      this.#options.answered()
      this.#checkIdle()
    }
  }

  async #send(owner: string, lanes: readonly HeldLane[]): Promise<void> {
    const { database, host } = this.#options
    const sent: Sent = lanes.map((lane) => [lane, lane.unsettled()])
    const ends = sent.flatMap(([, { events }]) => events)
    const step = database.steps.settle(
      owner,
      sent.map(([, { lane }]) => lane),
      ends,
    )
    const recorded = await measure(host.measured, 'record', () => database.run(step))
    this.#outage.worked()
    this.#failures = 0
    if (this.#dirty.size === 0) this.#batch = maxLanes
    host.logger.debug({ lanes: lanes.length, ends: ends.length }, 'recorded ends and releases of lanes')
    const answers = new Map(recorded.map(({ media, readyInMs }) => [media, readyInMs]))
    for (const [lane, unsettled] of sent) this.#answered(lane, unsettled, answers.get(lane.media))
  }

  #answered(lane: HeldLane, sent: Sent[number][1], readyInMs: number | undefined): void {
    if (lane.state === 'lost') return
    // Another process has it, or an earlier copy of this settle has released it.
    if (readyInMs === undefined) return this.#options.lost(lane)
    lane.settled(sent)
    if (sent.lane.release !== undefined) this.#options.released(lane, readyInMs)
  }

  async #failed(error: unknown, lanes: readonly HeldLane[]): Promise<void> {
    const { database, host } = this.#options
    if (this.#isStopped) return
    for (const lane of lanes) lane.mayBeSettled = true
    const failure = database.failure(error)
    // Failures of 500 events may be more than arrives in time.
    if (failure === 'timeout') this.#batch = Math.ceil(lanes.length / 2)
    if (failure !== undefined) return sleep(firstDelayMs)
    this.#batch = 1
    this.#outage.failed(() =>
      host.logger.error({ err: error, lanes: lanes.length }, 'the inbox could not record the result of an event'),
    )
    await sleep(Math.min(firstDelayMs * 2 ** this.#failures++, maxDelayMs))
  }

  #checkIdle(): void {
    if (this.#inFlight === 0 && this.#dirty.size === 0) this.#onIdle?.()
  }

  /** Resolves once nothing is left to record. */
  async idle(): Promise<void> {
    if (this.#inFlight > 0 || this.#dirty.size > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve))
  }

  /** Gives up: what is in flight still counts. */
  stop(): void {
    this.#isStopped = true
    this.#dirty.clear()
  }
}
