import { createHash } from 'node:crypto'
import { WebhookError } from '../../../errors.ts'
import type { HashAlgorithm, SignatureEncoding } from '../../../internal/crypto/encoding.ts'
import {
  type Signer,
  signWithBasicAuth,
  signWithHeaderToken,
  signWithHmac,
  signWithStandardWebhooks,
  signWithTimestampedSignature,
  signWithUrlToken,
} from '../../../testing/signers.ts'
import { basicAuth } from '../../../verify/basic-auth.ts'
import { headerToken } from '../../../verify/header-token.ts'
import { type HmacSignatureOptions, hmacSignature } from '../../../verify/hmac-signature.ts'
import type { SignedTemplate } from '../../../verify/signed-content.ts'
import { standardWebhooks } from '../../../verify/standard-webhooks.ts'
import { timestampedSignature } from '../../../verify/timestamped-signature.ts'
import { urlToken } from '../../../verify/url-token.ts'
import type { Verifier } from '../../../verify/verifier.ts'

/** A signing scheme and its options. Mirrors the receiver's verifiers. */
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
      /** The header for the timestamp. If set, timestamp and body are signed together, unless `signed` says otherwise. */
      readonly timestampHeader?: string
      /** What is signed, such as `v0:{timestamp}:{body}`. */
      readonly signed?: SignedTemplate
    }
  | { readonly scheme: 'standard-webhooks'; readonly secret: string; readonly headers?: 'webhook' | 'svix' }
  | {
      readonly scheme: 'timestamped-signature'
      readonly secret: string
      readonly header: string
      readonly time?: string
      readonly signature?: string
    }

/** @param eventId the event's id, for schemes that send one */
export function signerFor(options: SigningOptions, eventId: string, now: () => number = Date.now): Signer {
  switch (options.scheme) {
    case 'url-token':
      return signWithUrlToken(withoutScheme(options))
    case 'header-token':
      return signWithHeaderToken(withoutScheme(options))
    case 'basic-auth':
      return signWithBasicAuth(withoutScheme(options))
    case 'hmac-signature':
      return signWithHmac({ ...hmacOptions(options), now })
    case 'standard-webhooks':
      return signWithStandardWebhooks({ ...withoutScheme(options), now, id: eventId })
    case 'timestamped-signature':
      return signWithTimestampedSignature({ ...withoutScheme(options), now })
  }
}

/** Derives a stable event id by hashing the body, so retries, repeats and other webhooks share it. */
export const makeEventId = (body: string): string =>
  `msg_${createHash('sha256').update(body).digest('base64url').slice(0, 27)}`

/** Creates the verifier that accepts a scheme's deliveries. */
export function verifierFor(options: SigningOptions, now: () => number = Date.now): Verifier {
  switch (options.scheme) {
    case 'url-token':
      return urlToken(withoutScheme(options))
    case 'header-token':
      return headerToken(withoutScheme(options))
    case 'basic-auth':
      return basicAuth(withoutScheme(options))
    case 'hmac-signature':
      return hmacSignature({ ...hmacOptions(options), now })
    case 'standard-webhooks':
      return standardWebhooks({ ...withoutScheme(options), now })
    case 'timestamped-signature':
      return timestampedSignature({ ...withoutScheme(options), now })
  }
}

const withoutScheme = <Scheme extends SigningOptions>({ scheme: _, ...options }: Scheme): Omit<Scheme, 'scheme'> =>
  options

function hmacOptions({
  scheme: _,
  timestampHeader,
  ...options
}: SigningOptions & { readonly scheme: 'hmac-signature' }): HmacSignatureOptions {
  if (timestampHeader === undefined) return options
  if (timestampHeader.toLowerCase() !== options.header.toLowerCase()) {
    return { ...options, timestamp: { header: timestampHeader } }
  }
  throw new WebhookError('invalid_option', 'timestampHeader must differ from header')
}
