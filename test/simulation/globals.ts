import { currentScope, type Scope, type Task } from './world.ts'

// The globals that tell the time or wait. In a process of the simulation they use the world's time, elsewhere the real one.
// Modules keep some of them when they are loaded, so this module is the first that the simulation imports.

const real = {
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  setInterval: globalThis.setInterval,
  clearInterval: globalThis.clearInterval,
  setImmediate: globalThis.setImmediate,
  clearImmediate: globalThis.clearImmediate,
  Date: globalThis.Date,
  random: Math.random,
  performanceNow: performance.now.bind(performance),
  randomUUID: crypto.randomUUID.bind(crypto),
}

/** The time at which the world begins, by its clocks. */
const epoch = real.Date.UTC(2026, 2, 1, 12)

type Callback = (...parameters: unknown[]) => void

class VirtualTimer {
  task: Task | undefined

  unref(): this {
    return this
  }

  ref(): this {
    return this
  }

  cancel(): void {
    if (this.task) this.task.isCancelled = true
  }
}

function wait(scope: Scope, ms: number, run: () => void): VirtualTimer {
  const timer = new VirtualTimer()
  timer.task = scope.process.world.schedule(scope, ms, run)
  return timer
}

function repeat(scope: Scope, ms: number, run: () => void): VirtualTimer {
  const timer = new VirtualTimer()
  const next = () => {
    timer.task = scope.process.world.schedule(scope, ms, () => {
      next()
      run()
    })
  }
  next()
  return timer
}

/** A timer of Node waits whole milliseconds, and one at least. */
const delayOf = (ms: number | undefined): number => Math.max(1, Math.trunc(ms ?? 1) || 1)

const clearing =
  <Timer>(clearReal: (timer: Timer) => void) =>
  (timer: Timer | VirtualTimer): void => {
    if (timer instanceof VirtualTimer) timer.cancel()
    else clearReal(timer)
  }

const clockOf = ({ process }: Scope): number => Math.floor(epoch + process.world.now + process.clockOffsetMs)

function now(): number {
  const scope = currentScope()
  return scope === undefined ? real.Date.now() : clockOf(scope)
}

class VirtualDate extends real.Date {
  constructor(...parameters: []) {
    if (parameters.length === 0) super(now())
    else super(...parameters)
  }

  static override now = now
}

Object.assign(globalThis, {
  Date: VirtualDate,
  setTimeout: Object.assign((run: Callback, ms?: number, ...parameters: unknown[]) => {
    const scope = currentScope()
    if (scope === undefined) return real.setTimeout(run, ms, ...parameters)
    return wait(scope, delayOf(ms), () => run(...parameters))
  }, real.setTimeout),
  setInterval: (run: Callback, ms?: number, ...parameters: unknown[]) => {
    const scope = currentScope()
    if (scope === undefined) return real.setInterval(run, ms, ...parameters)
    return repeat(scope, delayOf(ms), () => run(...parameters))
  },
  setImmediate: Object.assign((run: Callback, ...parameters: unknown[]) => {
    const scope = currentScope()
    if (scope === undefined) return real.setImmediate(run, ...parameters)
    return wait(scope, 0, () => run(...parameters))
  }, real.setImmediate),
  clearTimeout: clearing(real.clearTimeout),
  clearInterval: clearing(real.clearInterval),
  clearImmediate: clearing(real.clearImmediate),
})
Math.random = () => currentScope()?.process.random.next() ?? real.random()
crypto.randomUUID = () =>
  (currentScope()?.process.random.uuid() ?? real.randomUUID()) as ReturnType<typeof real.randomUUID>
performance.now = () => {
  const scope = currentScope()
  if (scope === undefined) return real.performanceNow()
  const { world, startedAt } = scope.process
  return world.now - startedAt
}
