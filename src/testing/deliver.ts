import type { Delivery } from '../delivery.ts'
import type { Acknowledgement } from '../receiver/acknowledgement.ts'
import type { Receiver } from '../receiver/options.ts'
import { encodePayload, type Payload } from './samples.ts'
import type { Signer } from './signers.ts'

/** How a delivery is made. */
export interface DeliverOptions {
  /** @defaultValue none: the delivery is not signed */
  readonly sign?: Signer
  /** @defaultValue 'flat' */
  readonly format?: 'flat' | 'envelope'
  /** @defaultValue '/webhooks/media' */
  readonly url?: string
  /** Header fields beside the content type and those of the signature. */
  readonly headers?: Readonly<Record<string, string>>
}

/** An acknowledgement, and the end of the handling behind it. */
export interface Delivered extends Acknowledgement {
  /**
   * Resolves once the event has been handled or has become a dead letter, where this delivery was the first of it and
   * the receiver has a memory inbox; otherwise at once.
   */
  readonly handled: Promise<unknown>
}

/**
 * Hands a delivery to a receiver without HTTP.
 *
 * ```ts
 * const { status, handled } = await deliver(receiver, samplePayload('encoding.finished'), { sign })
 * await handled
 * ```
 * @param payload a payload, or the exact text or bytes of a body
 */
export async function deliver(
  receiver: Pick<Receiver, 'receive'>,
  payload: Payload | string | Uint8Array,
  options: DeliverOptions = {},
): Promise<Delivered> {
  let handled: Promise<unknown> = Promise.resolve()
  const acknowledgement = await receiver.receive({
    ...(await makeDelivery(payload, options)),
    waitUntil: (promise) => {
      handled = promise
    },
  })
  return { ...acknowledgement, handled }
}

/** Makes the delivery that {@link deliver} would hand over. */
export async function makeDelivery(
  payload: Payload | string | Uint8Array,
  { sign, format, url = '/webhooks/media', headers = {} }: DeliverOptions = {},
): Promise<Delivery> {
  const body =
    typeof payload === 'string'
      ? new TextEncoder().encode(payload)
      : payload instanceof Uint8Array
        ? payload
        : encodePayload(payload, format)
  const draft = { url, headers: { 'content-type': 'application/json', ...headers }, body }
  const signed = sign === undefined ? draft : await sign(draft)
  return { method: 'POST', url: signed.url, headers: new Headers(signed.headers), body: signed.body }
}
