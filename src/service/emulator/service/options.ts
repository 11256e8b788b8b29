import type { Media, MediaInput } from '../media/media.ts'
import type { Profile } from '../sending/profile.ts'
import type { Behaviour, DeliveryRecord, Sending } from '../sending/sending.ts'
import type { Clock } from '../shared/clock.ts'
import type { Credentials } from '../workspace/workspace.ts'

/** The options of {@link createEmulator}. */
export interface EmulatorOptions {
  /**
   * The port on 127.0.0.1. 0 picks a free one.
   * @defaultValue 0
   */
  readonly port?: number
  /**
   * How the API and the sender behave: as documented, or as the running service was observed to.
   * @defaultValue 'documented'
   */
  readonly profile?: Profile
  /**
   * Scales every delay: between a media item's events, before retries, and of the fault `delay`. 0.01 makes them a
   * hundred times shorter. Time limits stay.
   * @defaultValue 1
   */
  readonly timeScale?: number
  /** @defaultValue a random one */
  readonly publicKey?: string
  /** @defaultValue a random one */
  readonly secretKey?: string
  /** @defaultValue a random one */
  readonly accessToken?: string
  /**
   * Maximum number of unfinished sendings. At the limit, uploads are rejected with 503.
   * @defaultValue 10_000
   */
  readonly maxWaiting?: number
  /**
   * Finished sendings, and finished media items, to keep. Also the maximum number of media items that encode at once:
   * further uploads are rejected with 503.
   * @defaultValue 2_000
   */
  readonly maxRecords?: number
  /**
   * The clock, in nanoseconds since 1970.
   * @defaultValue the machine's clock
   */
  readonly clock?: Clock
}

/** A running emulator. */
export interface Emulator extends AsyncDisposable {
  /** The base URL, such as `http://127.0.0.1:4010`. Serves the page, and the API under `/api`. */
  readonly url: string
  /** The account's credentials, in the form `createClient` takes. */
  readonly credentials: Credentials
  /**
   * Simulates an upload. The media item's events follow at the pace of `timeScale`.
   * @throws WebhookError `invalid_option`; `overloaded` if too many sendings or media items are unfinished; `closing`
   * after `close`
   */
  addMedia(input?: MediaInput): Media
  /**
   * Sets how events are sent to a webhook from now on. `{}` restores the service's own behaviour.
   * @throws WebhookError `invalid_option` if the webhook does not exist or the behaviour is invalid
   */
  behave(webhookId: string, behaviour: Behaviour): void
  /** Lists the kept sendings, newest first. */
  sendings(): readonly Sending[]
  /**
   * Calls a function with each delivery from now on, once it is answered or has failed. Errors it throws are uncaught.
   * @returns a function that removes the listener
   */
  onDelivery(listener: (delivery: DeliveryRecord, sending: Sending) => void): () => void
  /**
   * Sends a sending's event again, to the webhook's current URL.
   * @param behaviour for this time only; the webhook's by default
   * @throws WebhookError `invalid_option` if the sending is not kept (any more), its webhook was deleted, or the
   * behaviour
   * is invalid; `overloaded` if too many sendings are unfinished; `closing` after `close`
   */
  repeat(sendingId: string, behaviour?: Behaviour): Sending
  /**
   * Resolves once no media item is encoding and every event is acknowledged or given up.
   * @param options.timeoutMs how long to wait, in ms (default: 30,000)
   * @throws WebhookError `timeout`, naming what is unfinished; `closing` if the emulator closes; `invalid_option`
   */
  settled(options?: { readonly timeoutMs?: number }): Promise<void>
  /** Stops listening and sending. Cuts off deliveries in progress. */
  close(): Promise<void>
}
