import type { Delivery, ParsedBody } from '../delivery.ts'
import { WebhookError } from '../errors.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'

// `application/json` and `application/…+json`, with or without parameters such as a charset.
const jsonType = /^application\/(?:json|[\w!#$&^.-]+\+json)[ \t]*(?:;|$)/i

/**
 * Refuses what cannot be a delivery, before its body is read.
 * @throws WebhookError `method_not_allowed`, `unsupported_media_type` or `too_large`
 */
export function guard({ method, headers, body }: Delivery, maxBodyBytes: number): void {
  if (method !== 'POST') throw new WebhookError('method_not_allowed', 'a delivery is a POST')
  const type = headers.get('content-type')
  if (type && !jsonType.test(type)) {
    throw new WebhookError('unsupported_media_type', 'the content type has to be application/json')
  }
  // A parser that read the body has decoded it; its own limit applied to what came over the wire.
  if (typeof body !== 'function') return
  const encoding = headers.get('content-encoding')
  if (encoding && encoding.toLowerCase() !== 'identity') {
    throw new WebhookError('unsupported_media_type', 'a content encoding is not accepted')
  }
  if (Number(headers.get('content-length')) > maxBodyBytes) throw tooLarge(maxBodyBytes)
}

/**
 * The body: its bytes, or what another parser left of it.
 * @throws WebhookError `too_large` or `incomplete`
 */
export function readBody({ body }: Delivery, maxBodyBytes: number): MaybePromise<Uint8Array | ParsedBody> {
  const read = typeof body === 'function' ? body(maxBodyBytes) : body
  return isPromise(read) ? read.then((result) => checkBody(result, maxBodyBytes)) : checkBody(read, maxBodyBytes)
}

function checkBody(
  read: Uint8Array | ParsedBody | 'too_large' | 'incomplete',
  maxBodyBytes: number,
): Uint8Array | ParsedBody {
  if (read === 'incomplete') throw new WebhookError('incomplete', 'the body ended before its end')
  if (read === 'too_large') throw tooLarge(maxBodyBytes)
  if (read instanceof Uint8Array && read.byteLength > maxBodyBytes) throw tooLarge(maxBodyBytes)
  return read
}

const tooLarge = (maxBodyBytes: number): WebhookError =>
  new WebhookError('too_large', `the body is larger than ${maxBodyBytes} bytes`)
