import type { Media, MediaInput } from '../media/media.ts'
import type { Profile } from '../sending/profile.ts'
import type { Behaviour, DeliveryRecord, Sending } from '../sending/sending.ts'
import type { Clock } from '../shared/clock.ts'
import type { Credentials } from '../workspace/workspace.ts'

/** The options of {@link createEmulator}. */
export interface EmulatorOptions {
  /**
   * The port to listen on, on 127.0.0.1. 0 chooses a free one.
   * @defaultValue 0
   */
  readonly port?: number
  /**
   * The behaviour of the API and the sender: as the service documents it, or as the running service was observed to behave.
   * @defaultValue 'documented'
   */
  readonly profile?: Profile
  /**
   * Multiplies every pause: between the events of a media item, before a retry, and of the fault `delay`. With 0.01,
   * they pass a hundred times as fast. Time limits do not change.
   * @defaultValue 1
   */
  readonly timeScale?: number
  /**
   * The public key of the account.
   * @defaultValue a random one
   */
  readonly publicKey?: string
  /**
   * The secret key of the account.
   * @defaultValue a random one
   */
  readonly secretKey?: string
  /**
   * The access token of the account.
   * @defaultValue a random one
   */
  readonly accessToken?: string
  /**
   * Maximum number of unfinished sendings. At this limit, another upload is rejected with 503.
   * @defaultValue 10_000
   */
  readonly maxWaiting?: number
  /**
   * The number of finished sendings, and of finished media items, to keep. It is also the maximum number of media items
   * that may be encoding at the same time. Another one is rejected with 503.
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
  /** The base URL, such as `http://127.0.0.1:4010`. It serves the page, and the API under `/api`. */
  readonly url: string
  /** The credentials of the account, which `createClient` takes as they are. */
  readonly credentials: Credentials
  /**
   * Simulates the upload of a media item. Its events follow at the pace of `timeScale`.
   * @throws WebhookError `invalid_option`; `overloaded` when too many sendings or media items are unfinished; `closing`
   * after `close`
   */
  addMedia(input?: MediaInput): Media
  /**
   * Sets how events are sent to a webhook from now on. `{}` restores the service's own behaviour.
   * @throws WebhookError `invalid_option` when the webhook does not exist or the behaviour is invalid
   */
  behave(webhookId: string, behaviour: Behaviour): void
  /** Lists the sendings that are kept, newest first. */
  sendings(): readonly Sending[]
  /**
   * Calls a function with each delivery from now on, once it was answered or has failed. An error that it throws is
   * uncaught.
   * @returns a function that ends the calls
   */
  onDelivery(listener: (delivery: DeliveryRecord, sending: Sending) => void): () => void
  /**
   * Sends the event of a sending again, to the webhook's current URL.
   * @param behaviour the behaviour for this time only; by default that of the webhook
   * @throws WebhookError `invalid_option` when the sending does not exist or is no longer kept, when its webhook was
   * deleted, or when the behaviour is invalid; `overloaded` when too many sendings are unfinished; `closing` after `close`
   */
  repeat(sendingId: string, behaviour?: Behaviour): Sending
  /**
   * Resolves when no media item is encoding and every event has been acknowledged or given up.
   * @param options.timeoutMs how long to wait, in ms (default: 30,000)
   * @throws WebhookError `timeout`, naming what is unfinished; `closing` when the emulator closes; `invalid_option`
   */
  settled(options?: { readonly timeoutMs?: number }): Promise<void>
  /** Stops listening and sending. Deliveries in progress are cut off. */
  close(): Promise<void>
}
