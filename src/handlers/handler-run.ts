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

/** Wraps the error, because a handler can throw `undefined`. */
export interface Failure {
  readonly error: unknown
}

/** One run of a handler, with a time limit. */
export class HandlerRun extends LazyAbort implements TransactionScope, EndedRun {
  readonly event: MediaEvent
  readonly handler: string
  /** Once the transaction is committed, the handler does not run again, even if it fails afterwards. */
  hasCommitted = false
  storageFailed = false
  readonly startedAt = performance.now()
  readonly context: HandlerContext
  span: RunSpan | undefined
  readonly #attempt: Attempt
  readonly #logger: Logger
  #unfollow: (() => void) | undefined
  #timer: Timer | undefined
  #hasEnded = false
  /** Ends the run before the handler has settled. */
  #cutOff: ((ended: MaybePromise<Failure | undefined>) => void) | undefined
  /** `undefined`: none yet. `null`: it has ended, or the handler has. */
  #transaction: Promise<unknown> | null | undefined
  /** The failure of a transaction that has ended, unless the handler has heard of it. */
  #unheard: () => Failure | undefined = () => undefined

  constructor({ event, receivedAt }: AcceptedEvent, attempt: Attempt, handler: string, logger: Logger) {
    super()
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

  // Not AbortSignal.any: on Node 20 it leaks if the handler leaves a listener on it.
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

  /** Calls the handler. Resolves with its failure, if any, once handler and transaction have ended, or on timeout. */
  start(handler: Handler<never, never>, timeoutMs: number, inContext: InContext): MaybePromise<Failure | undefined> {
    this.#timer = setTimeout(expire, timeoutMs, this)
    // A handler that hangs must not keep the process alive.
    unref(this.#timer)
    try {
      const result = inContext(handler, this.event as never, this.context as never)
      return isPromise<unknown>(result) ? this.#settled(result) : this.#end()
    } catch (error) {
      return this.#end({ error })
    }
  }

  #settled(result: Promise<unknown>): Promise<Failure | undefined> {
    return new Promise((resolve) => {
      this.#cutOff = resolve
      // Not `result.then`: a thenable may resolve with another thenable, and settle before it.
      void Promise.resolve(result).then(
        () => resolve(this.#end()),
        (error) => resolve(this.#end({ error })),
      )
    })
  }

  #end(failure?: Failure): MaybePromise<Failure | undefined> {
    // It may settle after it timed out.
    if (this.#hasEnded) return undefined
    this.#hasEnded = true
    if (!this.#transaction) {
      this.#transaction = null
      return this.#ended(failure ?? this.#unheard())
    }
    // The handler did not await its transaction. After a failure, roll back unless the commit has begun. The timeout
    // still applies.
    if (failure) this.abort(new WebhookError('handler_failed', 'a handler failed'))
    return this.#transaction.then(
      () => this.#ended(failure),
      (error) => this.#ended(failure ?? { error }),
    )
  }

  #ended(failure: Failure | undefined): Failure | undefined {
    clearTimeout(this.#timer)
    this.#unfollow?.()
    return failure
  }

  transaction<Result>(run: (client: never) => MaybePromise<Result>): Promise<Result> {
    const noDatabase = this.#attempt.transaction === undefined && 'the inbox has no database'
    const problem = noDatabase || (this.#transaction !== undefined && 'call it once, before the handler ends')
    if (problem) throw new WebhookError('invalid_transaction', `context.transaction: ${problem}`)
    const transaction = this.#commit(run)
    this.#transaction = transaction
    return this.#heard(transaction)
  }

  /** Returns the transaction to the handler. If the handler never waits for it, the run fails when the transaction does. */
  #heard<Result>(transaction: Promise<Result>): Promise<Result> {
    const given = new HeardPromise<Result>((resolve, reject) => void transaction.then(resolve, reject))
    // Node ends the process on a rejection that nobody handles. `given.catch` would count as the handler's own.
    Promise.prototype.then.call(given, undefined, (error) => {
      this.#unheard = () => (given.isHeard ? undefined : { error })
    })
    return given
  }

  async #commit<Result>(run: (client: never) => MaybePromise<Result>): Promise<Result> {
    // The inbox may run the callback in a batch that another event started: restore this event's async context.
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
    if (!this.#hasEnded) this.#cutOff?.(this.#end({ error }))
  }
}

const expire = (run: HandlerRun): void => run.expire()

/** The handler's context. Signal, transaction and log are lazy, because they are costly. */
class RunContext implements HandlerContext {
  readonly key: string
  readonly attempt: number
  readonly receivedAt: Date
  readonly #run: HandlerRun

  constructor(run: HandlerRun, attempt: number, receivedAt: Date) {
    this.#run = run
    this.key = run.event.key
    this.attempt = attempt
    // A copy: a Date can't be frozen, and the later runs have the same.
    this.receivedAt = new Date(receivedAt)
  }

  get principal(): string | undefined {
    return this.#run.event.principal
  }

  get signal(): AbortSignal {
    return this.#run.signal
  }

  // Typed only for inboxes with a database. Bound, because handlers destructure their context.
  get transaction(): HandlerRun['transaction'] {
    return (run) => this.#run.transaction(run)
  }

  get log(): Logger {
    return this.#run.log
  }
}

/** A promise that knows whether anything waits for it. */
class HeardPromise<Result> extends Promise<Result> {
  isHeard = false

  static override get [Symbol.species](): PromiseConstructor {
    return Promise
  }

  override then<Value = Result, Other = never>(
    ...handlers: Parameters<Promise<Result>['then']>
  ): Promise<Value | Other> {
    this.isHeard = true
    return super.then(...handlers) as Promise<Value | Other>
  }
}
