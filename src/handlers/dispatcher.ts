import { WebhookError } from '../errors.ts'
import type { MediaEvent } from '../events/catalogue.ts'
import type { Attempt, Handle, HandlingResult, TransactionScope } from '../inbox/inbox.ts'
import type { HandlerFailure } from '../inbox/reading.ts'
import { Deadlines, type Timed } from '../internal/deadlines.ts'
import { LazyAbort } from '../internal/lazy-abort.ts'
import { type Logger, withDetails } from '../internal/logger.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import type { Handler, HandlerContext } from './handler.ts'
import type { HandlerRegistry, RegisteredHandler } from './registry.ts'
import type { RetrySchedule } from './retry.ts'

/** Takes the outcome of each run of a handler. */
export interface RunReporter {
  run(
    outcome: 'handled' | 'retried' | 'dead-lettered' | 'failed' | 'stopped',
    run: HandlerRun,
    error?: unknown,
    retryInMs?: number,
  ): void
  /** Calls a function that the user gave, and reports the error that it throws or rejects with. */
  guarded(what: string, call: () => unknown): void
}

export interface DispatcherOptions {
  readonly registry: HandlerRegistry
  readonly reporter: RunReporter
  readonly logger: Logger
  readonly handlerTimeoutMs: number
  /** `undefined`: a failure is final, and the sender gets 500. */
  readonly retry: RetrySchedule | undefined
  /** `true` if handlers run where work goes on between requests, on Workers too. */
  readonly outlivesRequests?: boolean | undefined
}

const done: HandlingResult = Object.freeze({ status: 'done' })

/**
 * Makes the function that runs the handlers of an event, one after another. Its result tells the inbox what to do next.
 */
export function createDispatcher(options: DispatcherOptions): Handle {
  const { registry, reporter, logger, handlerTimeoutMs, retry, outlivesRequests } = options
  const deadlines = new Deadlines(handlerTimeoutMs, outlivesRequests)

  return async (event, receivedAt, attempt) => {
    // The delay is random, so it is drawn once for the event, however many of its handlers fail.
    let retryInMs: number | undefined
    const handlers = registry.handlersFor(event.type)
    const failures: HandlerFailure[] = []
    // Names of handlers that are no longer registered stay: a rollback may register them again.
    const completed = [...attempt.completed]
    if (handlers.length === 0) {
      // One existed when the event was accepted, perhaps in an earlier process: the event must not vanish silently.
      const message = `no handler is registered for ${event.type}`
      retryInMs = delayAfter(attempt, retry)
      logger.warn({ type: event.type, retryInMs }, message)
      failures.push({ handler: 'none', message })
    }
    for (let i = 0; i < handlers.length; i++) {
      const { name, handler } = handlers[i] as RegisteredHandler
      if (completed.includes(name)) continue
      const run = new HandlerRun(event, receivedAt, attempt, name, logger)
      const failure = await run.finish(handler, deadlines)
      if (failure === undefined || run.hasCommitted) {
        if (failure) reportFailure(options, run, failure.error)
        else reporter.run('handled', run)
        completed.push(name)
        const persisted = i + 1 < handlers.length ? attempt.succeeded?.(name) : undefined
        if (isPromise(persisted)) await persisted
      } else {
        retryInMs ??= delayAfter(attempt, retry)
        failures.push({ handler: name, message: errorText(failure.error) })
        if (attempt.aborted) reporter.run('stopped', run, failure.error)
        else reportFailure(options, run, failure.error, retryInMs)
      }
      // The inbox took the event back. The handlers have not failed, and the remaining ones must not start.
      if (attempt.aborted) return { status: 'retry', delayMs: 0, completed }
    }
    if (failures.length === 0) return done
    return retryInMs === undefined
      ? { status: 'dead', completed, failures }
      : { status: 'retry', delayMs: retryInMs, completed }
  }
}

/** Returns the pause before the next attempt, in ms; `undefined` when this one was the last. */
const delayAfter = ({ number }: Attempt, retry: RetrySchedule | undefined): number | undefined =>
  retry !== undefined && number < retry.attempts ? retry.delayAfter(number) : undefined

function reportFailure(
  { registry, reporter, retry }: DispatcherOptions,
  run: HandlerRun,
  error: unknown,
  retryInMs?: number,
): void {
  const { event, handler, context, hasCommitted } = run
  const final = hasCommitted ? 'handled' : retry === undefined ? 'failed' : 'dead-lettered'
  const outcome = retryInMs === undefined ? final : 'retried'
  reporter.run(outcome, run, error, retryInMs)
  for (const onError of registry.errorHandlers) {
    reporter.guarded('onError', () =>
      onError(error, { event, handler, attempt: context.attempt, willRetry: outcome === 'retried' }),
    )
  }
}

// A handler can throw anything, even an object whose conversion to a string throws.
function errorText(error: unknown): string {
  try {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  } catch {
    return 'an unprintable error'
  }
}

/** One run of one handler. */
export class HandlerRun extends LazyAbort implements Timed, TransactionScope {
  readonly event: MediaEvent
  readonly handler: string
  /** `true` once the handler's transaction is committed: the handler does not run again, even if it fails now. */
  hasCommitted = false
  readonly startedAt = performance.now()
  readonly context: HandlerContext
  readonly #attempt: Attempt
  readonly #logger: Logger
  #signal: AbortSignal | undefined
  #giveUp: ((error: Error) => void) | undefined
  /** `undefined` until there is one; `null` once it has ended, or the handler has. */
  #transaction: Promise<unknown> | null | undefined

  constructor(event: MediaEvent, receivedAt: Date, attempt: Attempt, handler: string, logger: Logger) {
    super()
    this.event = event
    this.handler = handler
    this.#attempt = attempt
    this.#logger = logger
    this.context = new RunContext(this, attempt.number, receivedAt)
  }

  override get signal(): AbortSignal {
    this.#signal ??= AbortSignal.any([this.#attempt.signal, super.signal])
    return this.#signal
  }

  get log(): Logger {
    const { key, type, mediaId } = this.event
    return withDetails(this.#logger, { key, type, mediaId, handler: this.handler })
  }

  /**
   * Calls the handler and waits until it and its transaction end, or its time is up. Returns the failure, if it failed.
   */
  async finish(handler: Handler<never, never>, deadlines: Deadlines): Promise<{ readonly error: unknown } | undefined> {
    deadlines.add(this)
    try {
      const result = handler(this.event as never, this.context as never)
      if (isPromise(result)) {
        await new Promise((resolve, reject) => {
          this.#giveUp = reject
          // A thenable can resolve with another thenable, which may never settle.
          Promise.resolve(result).then(resolve, reject)
        })
      }
      // The handler may have returned without awaiting it. When its time is up, it is rolled back.
      if (this.#transaction) await this.#transaction
    } catch (error) {
      if (this.#transaction) {
        this.abort(new WebhookError('handler_failed', 'a handler failed'))
        // Waits until it is rolled back, or committed if it is too late.
        await this.#transaction.catch(() => {})
      }
      return { error }
    } finally {
      this.#transaction ??= null
      deadlines.remove(this)
    }
  }

  transaction<Result>(run: (client: never) => MaybePromise<Result>): Promise<Result> {
    const hasNone = this.#attempt.transaction === undefined && 'the inbox has no database'
    const problem = hasNone || (this.#transaction !== undefined && 'a handler can call it once, before it ends')
    if (problem) throw new WebhookError('invalid_transaction', `context.transaction: ${problem}`)
    const transaction = this.#commit(run)
    this.#transaction = transaction
    return transaction
  }

  async #commit<Result>(run: (client: never) => MaybePromise<Result>): Promise<Result> {
    try {
      const result = await (this.#attempt as Required<Attempt>).transaction(this, run)
      this.hasCommitted = true
      return result
    } finally {
      this.#transaction = null
    }
  }

  expire(): void {
    const error = new WebhookError('timeout', 'the handler did not finish in time')
    this.abort(error)
    this.#giveUp?.(error)
  }
}

/** The context that a handler gets. Its costly parts are created when they are first read. */
class RunContext implements HandlerContext {
  readonly key: string
  readonly attempt: number
  readonly receivedAt: Date
  readonly #run: HandlerRun

  constructor(run: HandlerRun, attempt: number, receivedAt: Date) {
    this.#run = run
    this.key = run.event.key
    this.attempt = attempt
    this.receivedAt = receivedAt
  }

  get signal(): AbortSignal {
    return this.#run.signal
  }

  // In the type of the context only where the inbox has a database. Bound, since handlers destructure their context.
  get transaction(): HandlerRun['transaction'] {
    return (run) => this.#run.transaction(run)
  }

  get log(): Logger {
    return this.#run.log
  }
}
