import { createHash } from 'node:crypto'
import { flatBody, type Payload } from '../../testing/payload.ts'
import {
  type Signer,
  signWithBasicAuth,
  signWithHeaderToken,
  signWithHmac,
  signWithStandardWebhooks,
  signWithUrlToken,
} from '../../testing/signers.ts'
import { basicAuth } from '../../verify/basic-auth.ts'
import { headerToken } from '../../verify/header-token.ts'
import type { HashAlgorithm, SignatureEncoding } from '../../verify/hmac-options.ts'
import { type HmacSignatureOptions, hmacSignature } from '../../verify/hmac-signature.ts'
import { standardWebhooks } from '../../verify/standard-webhooks.ts'
import { urlToken } from '../../verify/url-token.ts'
import type { Verifier } from '../../verify/verifier.ts'

/** How deliveries are signed: a scheme for each verifier of the receiver, with the options of that verifier. */
export type SigningOptions =
  | {
      readonly scheme: 'url-token'
      readonly secret: string
      readonly in?: 'query' | 'path'
      readonly parameter?: string
    }
  | { readonly scheme: 'header-token'; readonly secret: string; readonly header: string; readonly prefix?: string }
  | { readonly scheme: 'basic-auth'; readonly username: string; readonly password: string }
  | {
      readonly scheme: 'hmac-signature'
      readonly secret: string
      readonly header: string
      readonly algorithm?: HashAlgorithm
      readonly encoding?: SignatureEncoding
      readonly prefix?: string
      /** The header that carries the time, where time and body are signed. */
      readonly timestampHeader?: string
    }
  | { readonly scheme: 'standard-webhooks'; readonly secret: string }

/**
 * The signer of a scheme.
 * @param eventId what the deliveries of an event carry as its id, where the scheme has one
 * @param now the clock, in ms since the epoch
 */
export function signerFor(options: SigningOptions, eventId: string, now: () => number = Date.now): Signer {
  switch (options.scheme) {
    case 'url-token':
      return signWithUrlToken(options)
    case 'header-token':
      return signWithHeaderToken(options)
    case 'basic-auth':
      return signWithBasicAuth(options)
    case 'hmac-signature':
      return signWithHmac({ ...hmacOptions(options), now })
    case 'standard-webhooks':
      return signWithStandardWebhooks({ ...options, now, id: eventId })
  }
}

/** An id for the event of a payload: the same for every retry, for every webhook, and when it is sent again. */
export const eventIdOf = (payload: Payload): string =>
  `msg_${createHash('sha256').update(flatBody(payload)).digest('base64url').slice(0, 27)}`

/**
 * The verifier that accepts what a scheme signs.
 * @throws WebhookError `invalid_option`
 */
export function verifierFor(options: SigningOptions): Verifier {
  switch (options.scheme) {
    case 'url-token':
      return urlToken(options)
    case 'header-token':
      return headerToken(options)
    case 'basic-auth':
      return basicAuth(options)
    case 'hmac-signature':
      return hmacSignature(hmacOptions(options))
    case 'standard-webhooks':
      return standardWebhooks(options)
  }
}

const hmacOptions = ({
  timestampHeader,
  ...options
}: SigningOptions & { readonly scheme: 'hmac-signature' }): HmacSignatureOptions =>
  timestampHeader === undefined ? options : { ...options, timestamp: { header: timestampHeader } }
