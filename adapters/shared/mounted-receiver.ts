import { type Acknowledgement, createReceiver, type MaybePromise, type Receiver } from '../../src/index.ts'
import { LogThrottle } from '../../src/internal/log-throttle.ts'
import { printable } from '../../src/internal/logger.ts'
import { requestsEndWork } from '../../src/internal/requests.ts'
import { within } from '../../src/internal/timers.ts'
import { checkReceiver } from './check-receiver.ts'

export type Receives = Pick<Receiver, 'receive'>

/** A receiver, or a function that makes one at the first delivery from what the platform passes with the request. */
export type ReceiverSource<Context extends readonly unknown[]> =
  | Receives
  | ((...context: Context) => MaybePromise<Receives>)

/** Time limit for making a receiver (ms). */
const makeTimeoutMs = 10_000

/** The receiver of one mount. From a function, it is made once, at the first delivery. */
export class MountedReceiver<Context extends readonly unknown[]> {
  ready: Receives | undefined
  readonly #adapter: string
  readonly #make: (...context: Context) => MaybePromise<Receives>
  readonly #failures = new LogThrottle()
  #making: Promise<Receives> | undefined

  /** @throws WebhookError `invalid_option` if `source` is neither a receiver nor a function */
  constructor(adapter: string, source: ReceiverSource<Context>) {
    this.#adapter = adapter
    const isMaker = typeof source === 'function' && (source as unknown) !== createReceiver
    if (!isMaker) {
      checkReceiver(adapter, source as Receives | undefined)
      this.ready = source as Receives
    }
    this.#make = source as (...context: Context) => MaybePromise<Receives>
  }

  /** Makes the receiver. After a failure or a timeout, the next delivery tries again; a late receiver is still used. */
  async get(context: Context): Promise<Receives | undefined> {
    try {
      return await (this.#making ?? this.#makeOnce(context))
    } catch (err) {
      // No receiver, so no user logger.
      const log = (more = 0) => {
        const times = more === 0 ? '' : ` (${more} more times within 1 s)`
        console.error(`media-webhooks: ${this.#adapter} has no receiver, and answers 500${times}:`, printable(err))
      }
      if (this.#failures.isFirst('', log)) log()
      return undefined
    }
  }

  /** Concurrent deliveries share one run. */
  #makeOnce(context: Context): Promise<Receives> {
    const making = within(makeTimeoutMs, this.#checked(context), late).finally(() => {
      this.#making = undefined
    })
    // On Workers a promise dies with its request, so other requests can't wait for it.
    if (!requestsEndWork) this.#making = making
    return making
  }

  async #checked(context: Context): Promise<Receives> {
    const made = await this.#make(...context)
    checkReceiver(this.#adapter, made)
    this.ready ??= made
    return this.ready
  }
}

function late(): never {
  throw new Error(`the receiver was not made within ${makeTimeoutMs / 1_000} s`)
}

export const noReceiver: Pick<Acknowledgement, 'status' | 'headers' | 'body'> = {
  status: 500,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ status: 'error', code: 'internal', message: 'the receiver failed' }),
}
