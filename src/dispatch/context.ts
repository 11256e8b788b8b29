import type { MediaEvent } from '../events/catalogue.ts'
import type { Attempt } from '../inbox/inbox.ts'
import { type Logger, withDetails } from '../logger.ts'
import type { HandlerContext } from './handler.ts'
import { LazyAbort } from './lazy-abort.ts'

/** The context of one run of one handler. What few handlers read is made when it is read. */
export class RunContext implements HandlerContext {
  readonly key: string
  readonly attempt: number
  readonly receivedAt: Date
  readonly #event: MediaEvent
  readonly #attempt: Attempt
  readonly #handler: string
  readonly #logger: Logger
  readonly #timeout = new LazyAbort()
  #signal: AbortSignal | undefined

  constructor(event: MediaEvent, receivedAt: Date, attempt: Attempt, handler: string, logger: Logger) {
    this.key = event.key
    this.attempt = attempt.number
    this.receivedAt = receivedAt
    this.#event = event
    this.#attempt = attempt
    this.#handler = handler
    this.#logger = logger
  }

  get signal(): AbortSignal {
    this.#signal ??= AbortSignal.any([this.#attempt.signal, this.#timeout.signal])
    return this.#signal
  }

  get log(): Logger {
    const { key, type, mediaId } = this.#event
    return withDetails(this.#logger, { key, type, mediaId, handler: this.#handler })
  }

  /** Tells the handler that its time is up. */
  abort(reason: Error): void {
    this.#timeout.abort(reason)
  }
}
