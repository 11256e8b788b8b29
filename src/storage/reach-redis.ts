import { WebhookError } from '../errors.ts'
import { within } from '../internal/timers.ts'

/**
 * Runs one step in Redis, and rejects when Redis does not answer in time.
 * @param onLate called with an answer that came after that
 */
export type ReachRedis = <T>(step: () => Promise<T>, onLate?: (answer: T) => void) => Promise<T>

export interface ReachOptions {
  /** Returns true if the client is connected, so that commands are sent immediately. */
  readonly isReady: () => boolean
  /** Maximum time that a step may take in all, in ms. */
  readonly timeoutMs: number
  /** Connects again when an answer shows that this server has become a replica. */
  readonly reconnect?: (() => void) | undefined
}

/** Maximum number of unanswered steps. They stay in memory until Redis answers, even if it hangs. */
const maxUnanswered = 500

/** Maximum number of steps that wait for a connection or for the answers to others. */
const maxWaiting = 10_000

/** The interval at which a connecting client is checked, and the first delay before a step is repeated (ms). */
const pollMs = 10

/** Maximum delay before a step is repeated (ms). */
const maxDelayMs = 160

/** Redis did nothing, for a while: it is failing over, starting, runs a script, or cannot write to its disk. */
const temporarilyUnavailable = /\b(READONLY|MASTERDOWN)\b|(^|-)(LOADING|BUSY|MISCONF|CLUSTERDOWN|TRYAGAIN|NOREPLICAS)\b/

/** This server is a replica. */
const replica = /\b(READONLY|MASTERDOWN)\b/

/**
 * Limits how long a step may wait for Redis, and how many do: clients queue commands for as long as they are
 * disconnected. A step waits up to `timeoutMs` for the connection, and is repeated within that time when the connection
 * breaks, so a step has to be safe to repeat. Steps reject with a WebhookError `unavailable`.
 */
export function redisReach(options: ReachOptions): ReachRedis {
  const { isReady, timeoutMs } = options
  const queue = new StepQueue(isReady)

  return async (step, onLate) => {
    const pending = new PendingStep()
    const onTimeout = (): never => {
      if (!isReady()) throw new Error('there is no connection to Redis')
      throw pending.error ?? new Error(`no answer from Redis within ${timeoutMs} ms`)
    }
    const answer = withRetries(step, pending, queue, options)
    return withinTimeout(answer, timeoutMs, onTimeout, onLate).finally(() => {
      pending.isOver = true
      queue.leave(pending)
    })
  }
}

/**
 * Limits the time of a step that a client sends over HTTP. It repeats nothing, since such clients do so themselves.
 * Nor does a step wait for others: on Workers, those of another request may never end.
 */
export function redisReachOverHttp(timeoutMs: number): ReachRedis {
  const onTimeout = (): never => {
    throw new Error(`no answer from Redis within ${timeoutMs} ms`)
  }
  return async (step, onLate) => withinTimeout(step(), timeoutMs, onTimeout, onLate)
}

async function withinTimeout<T>(
  answer: Promise<T>,
  timeoutMs: number,
  onTimeout: () => never,
  onLate: ((answer: T) => void) | undefined,
): Promise<T> {
  let isOver = false
  if (onLate !== undefined)
    answer.then(
      (value) => isOver && onLate(value),
      () => {},
    )
  try {
    return await within(timeoutMs, answer, onTimeout)
  } catch (error) {
    throw new WebhookError('unavailable', 'Redis gave no answer, or an error', { cause: withoutCommand(error) })
  } finally {
    isOver = true
  }
}

/** Removes the command that ioredis adds to an error: it contains an event or a password, which must not be logged. */
export function withoutCommand(error: unknown): unknown {
  if (typeof error === 'object' && error !== null) delete (error as { command?: unknown }).command
  return error
}

async function withRetries<T>(
  step: () => Promise<T>,
  pending: PendingStep,
  queue: StepQueue,
  options: ReachOptions,
): Promise<T> {
  for (let delayMs = pollMs; ; delayMs = Math.min(2 * delayMs, maxDelayMs)) {
    if (!queue.enter()) await queue.wait(pending)
    try {
      return await step()
    } catch (error) {
      pending.error = error
      const message = String((error as Error | undefined)?.message)
      if (pending.isOver || (options.isReady() && !temporarilyUnavailable.test(message))) throw error
      if (options.isReady() && replica.test(message)) options.reconnect?.()
    } finally {
      queue.answered()
    }
    await new Promise((resolve) => setTimeout(resolve, delayMs))
  }
}

/** A step on its way to Redis. */
class PendingStep {
  /** `true` once its caller has stopped waiting. */
  isOver = false
  /** The last error of Redis. */
  error: unknown
  start: () => void = () => {}
}

/** Steps in order of arrival: each is sent when Redis is connected and few enough others are unanswered. */
class StepQueue {
  readonly #isReady: () => boolean
  readonly #waiting = new Set<PendingStep>()
  #unanswered = 0
  #isPolling = false

  constructor(isReady: () => boolean) {
    this.#isReady = isReady
  }

  /** Takes a place among the unanswered steps. `false`: the step has to wait. */
  enter(): boolean {
    if (this.#waiting.size > 0 || this.#unanswered >= maxUnanswered || !this.#isReady()) return false
    this.#unanswered++
    return true
  }

  /** Waits for a place. A step whose caller has stopped waiting is forgotten. */
  wait(pending: PendingStep): Promise<void> {
    if (this.#waiting.size >= maxWaiting) throw new Error(`${maxWaiting} steps already wait for Redis`)
    return new Promise((resolve) => {
      pending.start = resolve
      if (pending.isOver) return
      this.#waiting.add(pending)
      this.#poll()
    })
  }

  leave(pending: PendingStep): void {
    this.#waiting.delete(pending)
  }

  answered(): void {
    this.#unanswered--
    this.#startNext()
  }

  #startNext(): void {
    for (const pending of this.#waiting) {
      if (this.#unanswered >= maxUnanswered || !this.#isReady()) break
      this.#unanswered++
      this.#waiting.delete(pending)
      pending.start()
    }
  }

  /** Polls the connection while steps wait, since clients differ in the events that they emit. */
  #poll(): void {
    if (this.#isPolling) return
    this.#isPolling = true
    setTimeout(() => {
      this.#isPolling = false
      this.#startNext()
      if (this.#waiting.size > 0) this.#poll()
    }, pollMs)
  }
}
