import { WebhookError } from '../errors.ts'
import type { MediaEvent } from '../events/catalogue.ts'
import type { AcceptedEvent, Attempt, TransactionScope } from '../inbox/inbox.ts'
import type { Deadlines, Timed } from '../internal/deadlines.ts'
import { LazyAbort } from '../internal/lazy-abort.ts'
import { type Logger, withDetails } from '../internal/logger.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import type { Handler, HandlerContext } from './handler.ts'
import type { RunSpan } from './reports.ts'

/** One run of one handler. */
export class HandlerRun extends LazyAbort implements Timed, TransactionScope {
  readonly event: MediaEvent
  readonly handler: string
  /** `true` once the handler's transaction is committed: the handler does not run again, even if it fails now. */
  hasCommitted = false
  readonly startedAt = performance.now()
  readonly context: HandlerContext
  /** Absent if nobody traces. */
  span: RunSpan | undefined
  readonly #attempt: Attempt
  readonly #logger: Logger
  #signal: AbortSignal | undefined
  #giveUp: ((error: Error) => void) | undefined
  /** `undefined` until there is one; `null` once it has ended, or the handler has. */
  #transaction: Promise<unknown> | null | undefined

  constructor({ event, receivedAt }: AcceptedEvent, attempt: Attempt, handler: string, logger: Logger) {
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
      const call = () => handler(this.event as never, this.context as never)
      const result = this.span === undefined ? call() : this.span.within(call)
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
