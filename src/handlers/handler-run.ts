import { WebhookError } from '../errors.ts'
import type { MediaEvent } from '../events/catalogue.ts'
import type { Attempt } from '../inbox/inbox.ts'
import type { Timed } from '../internal/deadlines.ts'
import { LazyAbort } from '../internal/lazy-abort.ts'
import { type Logger, withDetails } from '../internal/logger.ts'
import type { HandlerContext } from './handler.ts'

/** One run of one handler. */
export class HandlerRun implements Timed {
  readonly event: MediaEvent
  readonly handler: string
  readonly startedAt = performance.now()
  readonly context: HandlerContext
  readonly #attempt: Attempt
  readonly #logger: Logger
  #timeout: LazyAbort | undefined
  #signal: AbortSignal | undefined
  #giveUp: ((error: Error) => void) | undefined

  constructor(event: MediaEvent, receivedAt: Date, attempt: Attempt, handler: string, logger: Logger) {
    this.event = event
    this.handler = handler
    this.#attempt = attempt
    this.#logger = logger
    this.context = new RunContext(this, event.key, attempt.number, receivedAt)
  }

  get signal(): AbortSignal {
    this.#timeout ??= new LazyAbort()
    this.#signal ??= AbortSignal.any([this.#attempt.signal, this.#timeout.signal])
    return this.#signal
  }

  get log(): Logger {
    const { key, type, mediaId } = this.event
    return withDetails(this.#logger, { key, type, mediaId, handler: this.handler })
  }

  /** Waits for the handler, and for no longer than its time. What it does after that is no longer heard. */
  settled(result: Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#giveUp = reject
      // Of a thenable nobody knows what it resolves with: another one may never settle.
      Promise.resolve(result).then(resolve, reject)
    })
  }

  expire(): void {
    const error = new WebhookError('timeout', 'the handler did not finish in time')
    this.#timeout ??= new LazyAbort()
    this.#timeout.abort(error)
    this.#giveUp?.(error)
  }
}

/** What the handler sees of it. What few handlers read is made when it is read. */
class RunContext implements HandlerContext {
  readonly key: string
  readonly attempt: number
  readonly receivedAt: Date
  readonly #run: HandlerRun

  constructor(run: HandlerRun, key: string, attempt: number, receivedAt: Date) {
    this.#run = run
    this.key = key
    this.attempt = attempt
    this.receivedAt = receivedAt
  }

  get signal(): AbortSignal {
    return this.#run.signal
  }

  get log(): Logger {
    return this.#run.log
  }
}
