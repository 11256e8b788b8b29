import type { OpenExpectation } from '../../src/inbox/reading.ts'
import type { Receiver } from '../../src/index.ts'
import { requestsEndWork } from '../../src/internal/requests.ts'
import { encodePayload, samplePayload } from '../../src/testing/samples.ts'
import type { Life } from './journal.ts'
import { emittedAt, numberAt, numberOf } from './numbers.ts'
import { isDurable, type PlannedHandler } from './plan.ts'
import { makeReceiver, type Scene } from './receiver.ts'
import { Request } from './request.ts'
import type { Deliver, Post } from './sender.ts'
import { isOver, Process, type Scope, type World } from './world.ts'

/** The options of {@link Server}. */
export interface ServerOptions extends Scene {
  readonly name: string
}

/** The pause before a supervisor starts a process again that has ended, in ms. */
const restartMs = 300

/** An event that is due later than this, in ms, was stored before a clock went back by a month. */
const soonMs = 3_600_000

/** The time for which an orderly stop waits for handlers, in ms. */
const closeMs = 3_000

/** A server of a receiver: one process after another, each with the version that is deployed. */
export class Server {
  readonly #options: ServerOptions
  /** It starts the processes, and never ends. */
  readonly #supervisor: Process
  /** The connections of deliveries in progress: each function breaks one. */
  readonly #connections = new Set<() => void>()
  #process: Process | undefined
  #receiver: Receiver | undefined
  #life: Life | undefined
  #version = 0
  #processes = 0
  #clockOffsetMs = 0

  constructor(options: ServerOptions) {
    this.#options = options
    this.#supervisor = new Process(options.world, `supervisor of ${options.name}`)
    this.#start()
  }

  /** Counts the events that it has yet to handle, and those that it expects soon; 1 while it has no process. */
  async openEvents(): Promise<number> {
    const [process, receiver] = [this.#process, this.#receiver]
    if (process === undefined || receiver === undefined) return 1
    return this.#options.world.enter(process, async () => {
      const { waiting, running, retrying } = await receiver.inbox.stats()
      const expected = await this.#expectedBy(receiver)
      const soon = expected.filter(({ dueAt }) => dueAt.getTime() < Date.now() + soonMs)
      return waiting + running + retrying + soon.length
    })
  }

  async #expectedBy({ inbox }: Receiver): Promise<readonly OpenExpectation[]> {
    return (this.#options.journal.expects && (await inbox.expected?.(1_000))) || []
  }

  /** Writes down the expectations of the inbox that are open. */
  async noteExpected(): Promise<void> {
    const [process, receiver] = [this.#process, this.#receiver]
    if (process === undefined || receiver === undefined) return
    const { world, journal } = this.#options
    const expected = await world.enter(process, () => this.#expectedBy(receiver))
    for (const { beganAt } of expected) journal.expected.add(numberAt(beganAt))
  }

  /** Writes down the dead letters of the inbox. */
  async noteDeadLetters(): Promise<void> {
    const [process, receiver] = [this.#process, this.#receiver]
    if (process !== undefined && receiver !== undefined)
      await this.#options.world.enter(process, () => this.#noteDeadLetters(receiver))
  }

  async #noteDeadLetters({ inbox }: Receiver): Promise<void> {
    for (const { event, failures } of await inbox.deadLetters.list({ limit: 1_000 }))
      if (event) this.#options.journal.died(numberOf(event), failures)
  }

  /** The events that the process has left, once it has closed. */
  get leftOver(): number {
    return this.#process === undefined ? 0 : this.#options.world.waiting(this.#process).length
  }

  #start(): void {
    const { world, journal, storage, name, plan } = this.#options
    const process = new Process(world, `${name}.${++this.#processes}`, this.#clockOffsetMs)
    const handlers = plan.versions[this.#version % plan.versions.length] as readonly PlannedHandler[]
    this.#process = process
    journal.note(`${process.name} starts with ${handlers.map((each) => each.name)}`)
    try {
      process.atEnd(() => this.#ended(process))
      const inbox = world.enter(process, () => storage.inboxFor(process))
      this.#receiver = world.enter(process, () => makeReceiver(this.#options, process, handlers, inbox))
    } catch (error) {
      journal.note(`${process.name} cannot start: ${(error as Error).message}`)
      process.end()
      return
    }
    const handlersFor = (type: string) =>
      handlers.filter(({ types }) => (types as readonly string[]).includes(type)).map((each) => each.name)
    this.#life = { name: process.name, handlersFor, pauses: [], unfinished: new Set() }
    journal.lives.push(this.#life)
  }

  /** Starts the next process when this one was killed. */
  #ended(process: Process): void {
    const { world, journal } = this.#options
    for (const broken of this.#connections) broken()
    this.#connections.clear()
    this.#receiver = undefined
    if (this.#life?.end === 'closed') return
    journal.note(`${process.name} was killed`)
    if (this.#life !== undefined) Object.assign(this.#life, { endedAt: world.now, end: 'killed' })
    this.#life = undefined
    world.schedule(this.#supervisor, restartMs, () => this.#start())
  }

  /** Takes a delivery. */
  readonly deliver: Deliver = (post, answer, broken) => {
    const { world, journal, plan } = this.#options
    const [process, receiver] = [this.#process, this.#receiver]
    if (process === undefined || receiver === undefined) return broken()
    const scope = requestsEndWork ? new Request(process) : process
    this.#connections.add(broken)
    let kept: Promise<unknown> | undefined
    const waitUntil = (promise: Promise<unknown>) => {
      kept = promise
    }
    const body = () => bodyOf(world, scope, post)
    const delivery = { method: 'POST', url: '/', headers: jsonHeaders, body }
    const take = async () => {
      const { outcome, status } = await receiver.receive(
        requestsEndWork && plan.hasContext ? { ...delivery, waitUntil } : delivery,
      )
      // The process or its connection has ended, so the sender gets no answer.
      if (isOver(process) || !this.#connections.delete(broken)) return
      const { number } = post.event
      journal.decisions.push({ event: number, by: process.name, at: world.now, outcome, isCorrupt: post.isCorrupt })
      journal.note(`${process.name} answers event ${number}: ${outcome}`)
      answer(status)
      if (scope instanceof Request) scope.endAfter(kept)
    }
    world.schedule(scope, 0, () => {
      journal.arrivals.push({ event: post.event.number, by: process.name, at: world.now })
      void take()
    })
  }

  kill(): void {
    this.#process?.end()
  }

  pause(ms: number): void {
    const { world, journal } = this.#options
    if (this.#process === undefined || this.#life === undefined) return
    journal.note(`${this.#process.name} is paused for ${ms} ms`)
    this.#process.pause(ms)
    this.#life.pauses.push({ from: world.now, to: world.now + ms })
  }

  /** Corrects the machine's clock, or makes it wrong. */
  jump(ms: number): void {
    const { journal } = this.#options
    this.#clockOffsetMs += ms
    if (this.#process !== undefined) this.#process.clockOffsetMs = this.#clockOffsetMs
    journal.note(`the clock of ${this.#options.name} jumps by ${ms} ms`)
    journal.jumps.push(ms)
  }

  /** Stops the process in an orderly way, and starts the next version. */
  async deploy(): Promise<void> {
    this.#version++
    if (!(await this.close())) return
    this.#process?.end()
    this.#life = undefined
    this.#start()
  }

  /** Closes the receiver. Returns `false` if there is none, or if it was killed meanwhile. */
  async close(): Promise<boolean> {
    const { world, journal, plan } = this.#options
    const [process, receiver, life] = [this.#process, this.#receiver, this.#life]
    if (process === undefined || receiver === undefined || life === undefined) return false
    journal.note(`${process.name} closes`)
    // Like a server that has stopped listening. The deliveries in progress go on.
    this.#receiver = undefined
    const report = await world.enter(process, () => receiver.close({ timeoutMs: closeMs }))
    if (!isDurable(plan.setup)) await this.#noteDeadLetters(receiver)
    for (const { event } of report.unfinished) life.unfinished.add(numberOf(event))
    Object.assign(life, { endedAt: world.now, end: 'closed' })
    journal.note(`${process.name} has closed, unfinished: ${[...life.unfinished]}`)
    return true
  }
}

const jsonHeaders = { get: (name: string) => (name.toLowerCase() === 'content-type' ? 'application/json' : null) }

async function bodyOf(
  world: World,
  scope: Scope,
  { event, isCorrupt, isCut }: Post,
): Promise<Uint8Array | 'incomplete'> {
  const { number, type, mediaId } = event
  const emitted_at = emittedAt(number).toISOString()
  const body = encodePayload(samplePayload(type, { media_id: mediaId, title: `event ${number}`, emitted_at }))
  await world.sleep(scope, scope.process.random.between(0, 20))
  if (isCut) return 'incomplete'
  return isCorrupt ? body.subarray(0, body.length - 3) : body
}
