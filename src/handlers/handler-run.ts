import { WebhookError } from '../errors.ts'
import type { MediaEvent } from '../events/media-service/catalogue.ts'
import type { AcceptedEvent, Attempt, TransactionScope } from '../inbox/inbox.ts'
import { captureContext, type InContext } from '../internal/async-context.ts'
import { LazyAbort } from '../internal/lazy-abort.ts'
import { type Logger, withDetails } from '../internal/logger.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import { type Timer, unref } from '../internal/timers.ts'
import type { Handler, HandlerContext } from './handler.ts'
import type { EndedRun, RunSpan } from './reports.ts'

/** An error of a handler, which can be any value. */
export interface Failure {
  readonly error: unknown
}

/** Gets the end of a run. */
export interface RunOwner {
  /** @param failure absent if the handler succeeded */
  ended(run: HandlerRun, failure: Failure | undefined): void
}

/** One run of one handler. */
export class HandlerRun extends LazyAbort implements TransactionScope, EndedRun {
  readonly event: MediaEvent
  readonly handler: string
  /** `true` once the handler's transaction is committed: the handler does not run again, even if it fails now. */
  hasCommitted = false
  storageFailed = false
  readonly startedAt = performance.now()
  readonly context: HandlerContext
  /** Absent without tracing. */
  span: RunSpan | undefined
  readonly #owner: RunOwner
  readonly #attempt: Attempt
  readonly #logger: Logger
  #unfollow: (() => void) | undefined
  #timer: Timer | undefined
  #hasEnded = false
  /** `undefined` until there is one; `null` once it has ended, or the handler has. */
  #transaction: Promise<unknown> | null | undefined

  constructor(
    owner: RunOwner,
    { event, receivedAt }: AcceptedEvent,
    attempt: Attempt,
    handler: string,
    logger: Logger,
  ) {
    super()
    this.#owner = owner
    this.event = event
    this.handler = handler
    this.#attempt = attempt
    this.#logger = logger
    this.context = new RunContext(this, attempt.number, receivedAt)
  }

  override get signal(): AbortSignal {
    this.#unfollow ??= this.#followAttempt()
    return super.signal
  }

  // Not AbortSignal.any: Node 20 never frees such a signal if the handler leaves a listener on it.
  #followAttempt(): () => void {
    const { signal } = this.#attempt
    const abort = () => this.abort(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort)
    return () => signal.removeEventListener('abort', abort)
  }

  get log(): Logger {
    const { key, type, mediaId } = this.event
    return withDetails(this.#logger, { key, type, mediaId, handler: this.handler })
  }

  /** Calls the handler. The owner is told once: when the handler and its transaction have ended, or the time is up. */
  start(handler: Handler<never, never>, timeoutMs: number, inContext: InContext): void {
    this.#timer = setTimeout(() => this.expire(), timeoutMs)
    // A handler that hangs must not keep the process alive.
    unref(this.#timer)
    const failed = (error: unknown) => this.#end({ error })
    try {
      const call = () => handler(this.event as never, this.context as never)
      const { span } = this
      const result = inContext(span === undefined ? call : () => span.within(call))
      // A thenable can resolve with another thenable, which may never settle.
      if (isPromise(result)) return void Promise.resolve(result).then(() => this.#end(), failed)
    } catch (error) {
      return failed(error)
    }
    this.#end()
  }

  #end(failure?: Failure): void {
    // The handler may end after its time.
    if (this.#hasEnded) return
    this.#hasEnded = true
    if (!this.#transaction) {
      this.#transaction = null
      return this.#notifyOwner(failure)
    }
    // The handler did not await its transaction. If it failed, the transaction is rolled back, unless its commit has
    // already begun. If the handler's time is up meanwhile, it is also rolled back.
    if (failure) this.abort(new WebhookError('handler_failed', 'a handler failed'))
    void this.#transaction.then(
      () => this.#notifyOwner(failure),
      (error) => this.#notifyOwner(failure ?? { error }),
    )
  }

  #notifyOwner(failure: Failure | undefined): void {
    clearTimeout(this.#timer)
    this.#unfollow?.()
    this.#owner.ended(this, failure)
  }

  transaction<Result>(run: (client: never) => MaybePromise<Result>): Promise<Result> {
    const noDatabase = this.#attempt.transaction === undefined && 'the inbox has no database'
    const problem = noDatabase || (this.#transaction !== undefined && 'a handler can call it once, before it ends')
    if (problem) throw new WebhookError('invalid_transaction', `context.transaction: ${problem}`)
    const transaction = this.#commit(run)
    this.#transaction = transaction
    return transaction
  }

  async #commit<Result>(run: (client: never) => MaybePromise<Result>): Promise<Result> {
    // The inbox may call it from a batch that another event has started.
    const inContext = captureContext()
    const runHere = (client: never) => inContext(() => run(client))
    try {
      const result = await (this.#attempt as Required<Attempt>).transaction(this, runHere)
      this.hasCommitted = true
      return result
    } finally {
      this.#transaction = null
    }
  }

  expire(error: Error = new WebhookError('timeout', 'the handler did not finish in time')): void {
    this.abort(error)
    this.#end({ error })
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

  get principal(): string | undefined {
    return this.#run.event.principal
  }

  get signal(): AbortSignal {
    return this.#run.signal
  }

  // The type of the context has it only if the inbox has a database. It is bound, since handlers destructure their
  // context.
  get transaction(): HandlerRun['transaction'] {
    return (run) => this.#run.transaction(run)
  }

  get log(): Logger {
    return this.#run.log
  }
}
