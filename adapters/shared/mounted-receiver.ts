import { type Acknowledgement, createReceiver, type MaybePromise, type Receiver } from '../../src/index.ts'
import { requestsEndWork } from '../../src/internal/requests.ts'
import { within } from '../../src/internal/timers.ts'
import { checkReceiver } from './check-receiver.ts'

/** The part of a receiver that adapters call. */
export type Receives = Pick<Receiver, 'receive'>

/**
 * A receiver, or a function that makes it at the first delivery from what the platform passes with a request.
 * @typeParam Context the parameters of the function
 */
export type ReceiverSource<Context extends readonly unknown[]> =
  | Receives
  | ((...context: Context) => MaybePromise<Receives>)

/** The time that making a receiver may take, in ms. */
const makeTimeoutMs = 10_000

/** The receiver of a mount. It is made at the first delivery if the mount was given a function, and made once. */
export class MountedReceiver<Context extends readonly unknown[]> {
  /** The receiver, once it was made. */
  ready: Receives | undefined
  readonly #adapter: string
  readonly #make: (...context: Context) => MaybePromise<Receives>
  #making: Promise<Receives> | undefined

  /** @throws WebhookError `invalid_option` when `source` is neither a receiver nor a function that makes one */
  constructor(adapter: string, source: ReceiverSource<Context>) {
    this.#adapter = adapter
    const isMaker = typeof source === 'function' && (source as unknown) !== createReceiver
    if (!isMaker) {
      checkReceiver(adapter, source as Receives | undefined)
      this.ready = source as Receives
    }
    this.#make = source as (...context: Context) => MaybePromise<Receives>
  }

  /**
   * Makes the receiver. A failure is logged, and the next delivery tries again. If making it took too long, the next
   * delivery also tries again. A receiver that is made late is still used.
   */
  async get(context: Context): Promise<Receives | undefined> {
    try {
      return await (this.#making ?? this.#makeOnce(context))
    } catch (err) {
      // Without a receiver, there is no logger of the user's.
      console.error(`media-webhooks: ${this.#adapter} has no receiver, and answers 500:`, err)
      return undefined
    }
  }

  /** Starts to make it. The deliveries of one moment wait for the same promise. */
  #makeOnce(context: Context): Promise<Receives> {
    const making = within(makeTimeoutMs, this.#checked(context), late).finally(() => {
      this.#making = undefined
    })
    // On Workers a promise ends with its request, so no other request may wait for it.
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

/** The answer to a delivery for which no receiver could be made. */
export const noReceiver: Pick<Acknowledgement, 'status' | 'headers' | 'body'> = {
  status: 500,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ status: 'error', code: 'internal', message: 'the receiver failed' }),
}
