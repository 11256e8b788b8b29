import { AsyncLocalStorage } from 'node:async_hooks'
import type { Random } from './random.ts'

/** The code that runs now: a process, and on Workers one of its requests. Work that it has begun ends with it. */
export interface Scope {
  readonly process: Process
  /** The time from which nothing of it runs any more, in ms of the world. */
  readonly endsAt: number
}

/** A step that waits for its time. */
export interface Task {
  readonly scope: Scope
  readonly run: () => void
  at: number
  isCancelled: boolean
}

const current = new AsyncLocalStorage<Scope>()

/** Returns the scope of the code that calls it; `undefined` outside of the world. */
export const currentScope = (): Scope | undefined => current.getStore()

/** Returns true if nothing of it runs any more. */
export const isOver = ({ process, endsAt }: Scope): boolean => Math.min(process.endsAt, endsAt) <= process.world.now

/** The real ones, since the world replaces the global ones. */
const realImmediate = globalThis.setImmediate

/** A process of the simulation, or one of its machines: it has clocks, and can be paused or killed between any two steps. */
export class Process implements Scope {
  readonly world: World
  readonly name: string
  readonly random: Random
  readonly process = this
  readonly startedAt: number
  /** The lead of its clock over the world's, in ms. */
  clockOffsetMs: number
  pausedUntil = 0
  endsAt = Number.POSITIVE_INFINITY
  readonly #atEnd: (() => void)[] = []

  constructor(world: World, name: string, clockOffsetMs = 0) {
    this.world = world
    this.name = name
    this.random = world.random.fork()
    this.startedAt = world.now
    this.clockOffsetMs = clockOffsetMs
  }

  /** Calls `run` when the process has ended. */
  atEnd(run: () => void): void {
    this.#atEnd.push(run)
  }

  /** Ends it, as `kill -9` does: nothing of it runs any more. */
  end(): void {
    if (isOver(this)) return
    this.endsAt = this.world.now
    for (const run of this.#atEnd) run()
  }

  /** Of pauses that overlap, the last end counts: otherwise later steps pass those that wait, such as timers. */
  pause(ms: number): void {
    this.pausedUntil = Math.max(this.pausedUntil, this.world.now + ms)
  }
}

/** Virtual time: the steps of all processes, one after another. */
export class World {
  readonly random: Random
  now = 0
  /** These are in the order of their time. */
  #tasks: Task[] = []

  constructor(random: Random) {
    this.random = random
  }

  schedule(scope: Scope, delayMs: number, run: () => void): Task {
    const task = { scope, run, at: this.now + Math.max(0, delayMs), isCancelled: false }
    this.#insert(task)
    return task
  }

  /** Inserts it behind those of the same time. */
  #insert(task: Task): void {
    let low = 0
    let high = this.#tasks.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#tasks[middle] as Task).at <= task.at) low = middle + 1
      else high = middle
    }
    this.#tasks.splice(low, 0, task)
  }

  /** Runs `start` in a process, now. */
  enter<T>(scope: Scope, start: () => T): T {
    return current.run(scope, start)
  }

  /** Resolves in `scope` after some time. */
  sleep(scope: Scope, ms: number): Promise<void> {
    return new Promise((resolve) => this.schedule(scope, ms, resolve))
  }

  /** The steps that wait in processes that live. */
  waiting(scope: Process): readonly Task[] {
    return this.#tasks.filter((task) => task.scope.process === scope && !task.isCancelled && !isOver(task.scope))
  }

  /** Lets time pass until `isDone`, or until `until`. Returns `false` if the time came first. */
  async run(until: number, isDone: () => boolean = () => false): Promise<boolean> {
    await drained()
    while (!isDone()) {
      const task = this.#tasks[0]
      if (task === undefined || task.at > until) {
        this.now = until
        return false
      }
      this.#tasks.shift()
      if (task.isCancelled || isOver(task.scope)) continue
      const { pausedUntil } = task.scope.process
      if (pausedUntil > task.at) {
        task.at = pausedUntil
        this.#insert(task)
        continue
      }
      this.now = task.at
      current.run(task.scope, task.run)
      await drained()
    }
    return true
  }

  /** Lets time pass until a promise is settled, for up to a minute. `undefined` if it is then not settled. */
  async settle<T>(promise: Promise<T>): Promise<T | undefined> {
    let isSettled = false
    const settled = promise.finally(() => {
      isSettled = true
    })
    return (await this.run(this.now + 60_000, () => isSettled)) ? settled : undefined
  }
}

/** Resolves when every promise has done what it can, so that two steps never mix. */
const drained = () => new Promise<void>((resolve) => void realImmediate(resolve))
