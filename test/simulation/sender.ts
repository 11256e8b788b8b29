import { deliveryTimeoutMs, retryDelay } from '../../src/service/emulator/sending/profile.ts'
import type { DeliveryFailure } from '../../src/service/emulator/sending/sending.ts'
import type { Journal } from './journal.ts'
import type { Plan, PlannedEvent } from './plan.ts'
import { Process, type World } from './world.ts'

/** A delivery on its way to a server. */
export interface Post {
  readonly event: PlannedEvent
  readonly isCorrupt: boolean
  /** The connection breaks in the middle of the body. */
  readonly isCut: boolean
}

/** The result of a delivery: the server answers with a status, or the connection breaks. */
export type Deliver = (post: Post, answer: (status: number) => void, broken: () => void) => void

type Failure = DeliveryFailure['reason'] | undefined

/** The time for which the faults `reorder` and `delay` hold an event back, in ms. */
const heldBackMs = 5_000

/** Maximum time to a server or back, in ms. */
const latencyMs = 30

/** Sends events as the service does, in one of its profiles and with its faults. */
export class Sender {
  readonly #world: World
  readonly #journal: Journal
  readonly #plan: Plan
  readonly #deliver: Deliver
  readonly #process: Process
  #unfinished = 0

  constructor(world: World, journal: Journal, plan: Plan, deliver: Deliver) {
    this.#world = world
    this.#journal = journal
    this.#plan = plan
    this.#deliver = deliver
    this.#process = new Process(world, 'sender')
  }

  get isDone(): boolean {
    return this.#unfinished === 0
  }

  /** Sends an event at its time, until it is acknowledged or given up. */
  send(event: PlannedEvent): void {
    this.#unfinished++
    const isLate = event.fault === 'reorder' || event.fault === 'delay'
    this.#world.schedule(this.#process, event.at + (isLate ? heldBackMs : 0) - this.#world.now, async () => {
      await this.#sendInTime(event)
      this.#unfinished--
    })
  }

  async #sendInTime(event: PlannedEvent): Promise<void> {
    const { profile, timeScale } = this.#plan
    const first = event.fault === 'concurrent-duplicate' ? [this.#post(event, true), this.#post(event)] : []
    for (let attempt = 1; ; attempt++) {
      const reason = attempt === 1 && first[0] !== undefined ? await first[0] : await this.#post(event, attempt === 1)
      const pause = reason && retryDelay(profile, attempt, { reason, message: '' })
      if (pause === undefined) break
      await this.#world.sleep(this.#process, pause * timeScale)
    }
    await first[1]
    if (event.fault === 'duplicate') await this.#post(event)
  }

  /** Makes one delivery, and returns why it was not acknowledged. */
  #post(event: PlannedEvent, isFirst = false): Promise<Failure> {
    const fault = isFirst ? event.fault : undefined
    const post = { event, isCorrupt: fault === 'corrupt-body', isCut: fault === 'cut-connection' }
    const travel = (run: () => void) =>
      this.#world.schedule(this.#process, this.#process.random.between(0, latencyMs), run)
    return new Promise((resolve) => {
      this.#world.schedule(this.#process, deliveryTimeoutMs, () => resolve('timeout'))
      const broken = () => void travel(() => resolve('connection'))
      const answer = (status: number) => {
        if (fault === 'lost-answer' || post.isCut) return broken()
        travel(() => resolve(this.#read(event, status)))
      }
      travel(() => this.#deliver(post, answer, broken))
    })
  }

  #read({ number }: PlannedEvent, status: number): Failure {
    if (status !== 200) return 'status'
    if (!this.#journal.told.has(number)) this.#journal.told.set(number, this.#world.now)
    return undefined
  }
}
