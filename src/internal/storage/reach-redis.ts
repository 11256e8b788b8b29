import { within } from '../timers.ts'
import { outage } from './outage.ts'

/** Runs a step in Redis with a time limit. `onLate` gets an answer that arrives after it. */
export type ReachRedis = <T>(step: () => Promise<T>, onLate?: (answer: T) => void) => Promise<T>

export interface ReachOptions {
  /** Returns `true` while the client is connected and sends commands at once. */
  readonly isReady: () => boolean
  /** Total time limit of a step, in ms. */
  readonly timeoutMs: number
  /** Returns why there is no connection, if the client said so. */
  readonly lastError?: (() => unknown) | undefined
  /** Reconnects, after an answer showed that this server has become a replica. */
  readonly reconnect?: (() => void) | undefined
}

/** Maximum number of unanswered steps. Each stays in memory until Redis answers, even if it hangs. */
const maxUnanswered = 500

/** Maximum number of steps waiting for a connection or for others' answers. */
const maxWaiting = 10_000

/** Poll interval while connecting, and first retry delay (ms). */
const pollMs = 10

/** Maximum retry delay (ms). */
const maxDelayMs = 160

/** Redis did nothing, for now: failing over, loading, busy with a script, or unable to write to disk. */
const temporarilyUnavailable = /\b(READONLY|MASTERDOWN)\b|(^|-)(LOADING|BUSY|MISCONF|CLUSTERDOWN|TRYAGAIN|NOREPLICAS)\b/

const replica = /\b(READONLY|MASTERDOWN)\b/

/**
 * Bounds the wait for Redis, in time and in number of steps: clients queue commands for as long as they are
 * disconnected. A step waits up to `timeoutMs` for a connection and is retried within that time if the connection
 * breaks, so it must be safe to retry. Steps reject with a WebhookError `unavailable`.
 */
export function redisReach(options: ReachOptions): ReachRedis {
  const { isReady, timeoutMs } = options
  const queue = new StepQueue(isReady)

  return async (step, onLate) => {
    const pending = new PendingStep()
    const onTimeout = (): never => {
      if (!isReady()) throw options.lastError?.() ?? new Error('there is no connection')
      throw pending.error ?? new Error(`no answer within ${timeoutMs} ms`)
    }
    const answer = withRetries(step, pending, queue, options)
    return withinTimeout(answer, timeoutMs, onTimeout, onLate).finally(() => {
      pending.isOver = true
      queue.leave(pending)
    })
  }
}

/**
 * Bounds the time of a step sent over HTTP. No retries: HTTP clients have their own. No waiting for other steps either:
 * on Workers, those of another request may never end.
 */
export function redisReachOverHttp(timeoutMs: number): ReachRedis {
  const onTimeout = (): never => {
    throw new Error(`no answer within ${timeoutMs} ms`)
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
    throw outage('Redis', withoutCommand(error))
  } finally {
    isOver = true
  }
}

/** Removes the command that ioredis adds to an error: it holds an event or a password, which must not be logged. */
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

class PendingStep {
  /** `true` once its caller has stopped waiting. */
  isOver = false
  error: unknown
  start: () => void = () => {}
}

/** FIFO queue of steps. Sends each once Redis is connected and few enough others are unanswered. */
class StepQueue {
  readonly #isReady: () => boolean
  readonly #waiting = new Set<PendingStep>()
  #unanswered = 0
  #isPolling = false

  constructor(isReady: () => boolean) {
    this.#isReady = isReady
  }

  /** Takes a slot among the unanswered steps. Returns `false` if the step must wait. */
  enter(): boolean {
    if (this.#waiting.size > 0 || this.#unanswered >= maxUnanswered || !this.#isReady()) return false
    this.#unanswered++
    return true
  }

  /** Waits for a slot. Forgets steps whose caller has stopped waiting. */
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

  /** Polls the connection while steps wait, because clients emit different events. */
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
