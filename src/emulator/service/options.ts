import type { Media, MediaInput } from '../media/media.ts'
import type { Profile } from '../sending/profile.ts'
import type { Behaviour, Sending } from '../sending/sending.ts'
import type { Clock } from '../shared/clock.ts'

/** The options of {@link createEmulator}. */
export interface EmulatorOptions {
  /**
   * The port to listen on, on 127.0.0.1.
   * @defaultValue 0: a free one
   */
  readonly port?: number
  /**
   * How events are sent: as the service documents it, or as it was seen to do it.
   * @defaultValue 'documented'
   */
  readonly profile?: Profile
  /**
   * Multiplies every pause: between the events of a media, before a retry, of a delay. Time limits stay as they are.
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
   * How many events on their way may wait at once; a media beyond that is refused with 503.
   * @defaultValue 10_000
   */
  readonly maxWaiting?: number
  /**
   * How many finished sendings, and how many finished media, are kept to be looked at; and how many media may be encoding
   * at once: one beyond that is refused with 503.
   * @defaultValue 2_000
   */
  readonly maxRecords?: number
  /** @defaultValue the machine's */
  readonly clock?: Clock
}

/** What a client of the API needs. */
export interface Credentials {
  readonly publicKey: string
  readonly secretKey: string
  readonly accessToken: string
}

/** A running emulator. */
export interface Emulator extends AsyncDisposable {
  /** The base URL, such as `http://127.0.0.1:4010`: the page is there, the API under `/api`. */
  readonly url: string
  readonly credentials: Credentials
  /**
   * Uploads a media, as it were: its events follow, at the speed that `timeScale` sets.
   * @throws WebhookError `invalid_option`, or `overloaded` when too many events wait or too many media are encoding
   */
  addMedia(input?: MediaInput): Media
  /**
   * Sets how events are sent to a webhook from now on; `{}` is as the service does.
   * @throws WebhookError `invalid_option` for a webhook that does not exist, or a behaviour that makes no sense
   */
  behave(webhookId: string, behaviour: Behaviour): void
  /** The sendings that are kept, the newest one first. */
  sendings(): readonly Sending[]
  /**
   * Sends the event of a sending once more, to the webhook as it is now.
   * @param behaviour for this once; by default that of the webhook
   * @throws WebhookError `invalid_option` when there is no such sending (any more), its webhook was deleted, or the
   * behaviour makes no sense; `overloaded` when too many events wait
   */
  repeat(sendingId: string, behaviour?: Behaviour): Sending
  /**
   * Resolves when every media has come to its end and every event has been acknowledged or given up.
   * @param options.timeoutMs rejects with `timeout` after so long (default: 30 s)
   * @throws WebhookError `timeout`, which says what is still going on; `closing` when the emulator closes; `invalid_option`
   */
  settled(options?: { readonly timeoutMs?: number }): Promise<void>
  /** Stops listening and sending. What was on its way is cut off. */
  close(): Promise<void>
}
