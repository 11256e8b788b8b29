import { WebhookError } from '../errors.ts'
import { mediaService } from '../events/media-service/sender.ts'
import type { AnySender } from '../events/sender.ts'
import type { MediaService } from '../events/types.ts'
import { aFunction, aPlainObject, checkOptions, oneOf, type Rules, text } from '../internal/check-options.ts'
import { encoder } from '../internal/utf8.ts'
import type { Acknowledgement, Delivery } from '../receiver/delivery.ts'
import type { Receiver } from '../receiver/options.ts'
import { fields } from './payload.ts'
import { encodePayload, type Payload } from './samples.ts'
import type { Signer } from './signers.ts'

/** The options of {@link deliver} and {@link makeDelivery}. */
export interface DeliverOptions {
  /** @defaultValue none: unsigned */
  readonly sign?: Signer
  /**
   * The wire format of the body.
   * @defaultValue 'flat'
   */
  readonly format?: 'flat' | 'envelope'
  /** @defaultValue '/webhooks/media' */
  readonly url?: string
  /** Headers besides the content type and the signature's. */
  readonly headers?: Readonly<Record<string, string>>
}

const rules: Rules<DeliverOptions> = {
  sign: aFunction,
  format: oneOf('flat', 'envelope'),
  url: text,
  headers: aPlainObject,
}

/** An acknowledgement, and a promise for the handling of the event. */
export interface Delivered extends Acknowledgement {
  /**
   * With a memory inbox, for the first delivery of an event: resolves after its last attempt, with `handled`, or with
   * `failed` for a dead letter. With `sqliteInbox`: waits too, and resolves with `undefined`. Of a list of events: with an array.
   * Otherwise resolves at once.
   */
  readonly handled: Promise<unknown>
}

/**
 * Builds a delivery and passes it to a receiver without HTTP.
 *
 * ```ts
 * const { status, handled } = await deliver(receiver, samplePayload('encoding.finished'), { sign })
 * await handled
 * ```
 * @param payload a payload, or the raw string or bytes of a body. For your own sender, any JSON object, or the fields of its form
 * @throws WebhookError `invalid_option`
 */
export async function deliver<Of extends AnySender = MediaService>(
  receiver: Pick<Receiver, 'receive'> & { readonly sender?: Of },
  payload: (Of extends MediaService ? Payload : object) | string | Uint8Array,
  options: DeliverOptions = {},
): Promise<Delivered> {
  if (typeof receiver?.receive !== 'function')
    throw invalid('deliver: give it a receiver; are the parentheses of createReceiver() missing?')
  const headers = { 'content-type': typeFor(receiver.sender), ...options.headers }
  const waited: Promise<unknown>[] = []
  const acknowledgement = await receiver.receive({
    ...(await makeDelivery(bodyFor(receiver.sender, payload), { ...options, headers })),
    waitUntil: (promise) => {
      waited.push(promise)
    },
  })
  const [first = Promise.resolve(), ...others] = waited
  return { ...acknowledgement, handled: others.length > 0 ? Promise.all(waited) : first }
}

/** The first content type of a sender that lists its own. */
const typeFor = (sender: AnySender | undefined): string =>
  /^[^ /]+\/[^ ]+/.exec(sender?.body?.contentTypes ?? '')?.[0] ?? 'application/json'

/** Only you know the payloads of your own sender: they are sent unchecked. */
function bodyFor(sender: AnySender | undefined, payload: object | string | Uint8Array): Payload | string | Uint8Array {
  const isOwn = sender !== undefined && sender !== mediaService
  const isObject = typeof payload === 'object' && payload !== null && !ArrayBuffer.isView(payload)
  return isOwn && isObject ? (sender.body.write(payload) ?? '') : (payload as Payload)
}

/**
 * Builds the delivery that {@link deliver} would pass to a receiver.
 * @param payload a payload, or the raw string or bytes of a body
 * @throws WebhookError `invalid_option`
 */
export async function makeDelivery(
  payload: Payload | string | Uint8Array,
  options: DeliverOptions = {},
): Promise<Delivery> {
  checkOptions('deliver', options, rules)
  const { sign, format, url = '/webhooks/media', headers = {} } = options
  const body = toBytes(payload, format)
  const draft = { url, headers: { 'content-type': 'application/json', ...headers }, body }
  const signed = sign === undefined ? draft : await sign(draft)
  return { method: 'POST', url: signed.url, headers: new Headers(signed.headers), body: signed.body }
}

function toBytes(payload: Payload | string | Uint8Array, format?: 'flat' | 'envelope'): Uint8Array {
  if (typeof payload === 'string') return encoder.encode(payload)
  if (ArrayBuffer.isView(payload)) return payload as Uint8Array
  checkPayload(payload)
  return encodePayload(payload, format)
}

function checkPayload(payload: Payload): void {
  const example = "samplePayload('encoding.finished')"
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload))
    throw invalid(`a delivery needs a payload, such as ${example}, or the text or bytes of a body`)
  const missing = fields.find((field) => typeof payload[field] !== 'string')
  if (missing === undefined) return
  throw invalid(`the payload's ${missing} must be a string; ${example} has every field. Pass other JSON as a string`)
}

const invalid = (message: string) => new WebhookError('invalid_option', message)
