import { hmac, hmacKey } from '#crypto'
import { WebhookError } from '../errors.ts'
import { decodeBase64, encodeBytes } from '../internal/crypto/encoding.ts'
import { encoder } from '../internal/utf8.ts'
import { type BasicAuthOptions, basicAuth } from '../verify/basic-auth.ts'
import { type HeaderTokenOptions, headerToken } from '../verify/header-token.ts'
import { type HmacSignatureOptions, hmacSignature } from '../verify/hmac-signature.ts'
import { type GetSecrets, readSecrets, type Secrets } from '../verify/secrets.ts'
import { signedContentOf } from '../verify/signature-header.ts'
import { type StandardWebhooksOptions, standardWebhooks } from '../verify/standard-webhooks.ts'
import { type TimestampedSignatureOptions, timestampedSignature } from '../verify/timestamped-signature.ts'
import { type UrlTokenOptions, urlToken } from '../verify/url-token.ts'

/** What a signer reads and changes of a delivery. */
export interface Draft {
  /** The request URL. `signWithUrlToken` changes it. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** Signs a delivery as the sender would: the verifier with the same options accepts it. Returns a new draft. */
export type Signer = (draft: Draft) => Promise<Draft>

/** Signs for `urlToken` with the same options. Replaces a token already in the URL. */
export function signWithUrlToken(options: UrlTokenOptions): Signer {
  urlToken(options)
  const { secret, in: part = 'query', parameter = 'token' } = options
  const tokens = readTexts(secret)
  const token = encodeURIComponent(tokens[0] as string)
  return async (draft) => {
    const [, path = '', query = '', hash = ''] = /^([^?#]*)(\?[^#]*)?(#.*)?$/s.exec(draft.url) ?? []
    if (part === 'path') return { ...draft, url: `${pathWithToken(path, token, tokens)}${query}${hash}` }
    return { ...draft, url: `${path}?${queryWithToken(query.slice(1), token, parameter)}${hash}` }
  }
}

/** Appends the token, or replaces the last path segment if that is one of the tokens. */
function pathWithToken(path: string, token: string, tokens: readonly string[]): string {
  const slash = path.lastIndexOf('/')
  return `${tokens.some((each) => encodesAs(path.slice(slash + 1), each)) ? path.slice(0, slash) : path}/${token}`
}

function encodesAs(segment: string, text: string): boolean {
  try {
    return decodeURIComponent(segment) === text
  } catch {
    return false
  }
}

/** Sets the parameter to a token. The rest of the query stays as written. */
function queryWithToken(query: string, token: string, parameter: string): string {
  const entry = `${encodeURIComponent(parameter)}=${token}`
  if (query === '') return entry
  const entries = query.split('&')
  // URLSearchParams strips a leading question mark. The ampersand prevents that.
  const isToken = (each: string, index: number) => new URLSearchParams(index === 0 ? each : `&${each}`).has(parameter)
  const at = entries.findIndex(isToken)
  if (at === -1) return `${query}&${entry}`
  return entries.flatMap((each, index) => (index === at ? [entry] : isToken(each, index) ? [] : [each])).join('&')
}

/** Signs for `headerToken` with the same options. */
export function signWithHeaderToken(options: HeaderTokenOptions): Signer {
  headerToken(options)
  const { secret, header, prefix = '' } = options
  return async (draft) => withHeaders(draft, { [header]: `${prefix}${firstSecret(secret)}` })
}

/** Signs for `basicAuth` with the same options. */
export function signWithBasicAuth(options: BasicAuthOptions): Signer {
  basicAuth(options)
  const { username, password } = options
  const credentials = encodeBytes(encoder.encode(`${username}:${firstSecret(password)}`), 'base64')
  return async (draft) => withHeaders(draft, { authorization: `Basic ${credentials}` })
}

/** Signs for `hmacSignature` with the same options, at the time of `now`. */
export function signWithHmac(options: HmacSignatureOptions): Signer {
  hmacSignature(options)
  const { header, algorithm = 'sha256', encoding = 'hex', prefix = '', timestamp, now = Date.now } = options
  const fill = signedContentOf('hmacSignature', options)
  const key = hmacKey(algorithm, encoder.encode(firstSecret(options.secret)))
  return async (draft) => {
    const time = unixSeconds(now)
    const signed = fill(draft, time)
    const signature = await hmac(key, signed.prefix, signed.body, encoding)
    return withHeaders(draft, {
      [header]: `${prefix}${signature}`,
      ...(timestamp && { [timestamp.header]: time }),
    })
  }
}

/**
 * Signs for `standardWebhooks` with the same options, at the time of `now`.
 * @param options.id the event's id (default: a sample)
 */
export function signWithStandardWebhooks(options: StandardWebhooksOptions & { readonly id?: string }): Signer {
  const { id = 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W', ...verifierOptions } = options ?? {}
  standardWebhooks(verifierOptions)
  const { now = Date.now, headers = 'webhook' } = options
  const key = hmacKey('sha256', decodeBase64(firstSecret(options.secret).replace(/^whsec_/, '')) ?? new Uint8Array())
  return async (draft) => {
    const time = unixSeconds(now)
    const signature = await hmac(key, `${id}.${time}.`, draft.body, 'base64')
    return withHeaders(draft, {
      [`${headers}-id`]: id,
      [`${headers}-timestamp`]: time,
      [`${headers}-signature`]: `v1,${signature}`,
    })
  }
}

/** Signs for `timestampedSignature` with the same options, at the time of `now`. */
export function signWithTimestampedSignature(options: TimestampedSignatureOptions): Signer {
  timestampedSignature(options)
  const { secret, header, time: timeName = 't', signature: signatureName = 'v1', now = Date.now } = options
  const key = hmacKey('sha256', encoder.encode(firstSecret(secret)))
  return async (draft) => {
    const time = unixSeconds(now)
    const signature = await hmac(key, `${time}.`, draft.body, 'hex')
    return withHeaders(draft, { [header]: `${timeName}=${time},${signatureName}=${signature}` })
  }
}

// Senders sign with one secret, the newest.
const firstSecret = (secrets: Secrets | GetSecrets): string => readTexts(secrets)[0] as string

function readTexts(secrets: Secrets | GetSecrets): readonly string[] {
  if (typeof secrets !== 'function') return readSecrets('signer', secrets).map(({ text }) => text)
  throw new WebhookError('invalid_option', "signer: give the secret to sign with, not the verifier's function")
}

const unixSeconds = (now: () => number): string => String(Math.floor(now() / 1000))

/** Sets headers. Replaces those of the same name, in any case. */
function withHeaders(draft: Draft, headers: Record<string, string>): Draft {
  const names = Object.keys(headers).map((name) => name.toLowerCase())
  const others = Object.entries(draft.headers).filter(([name]) => !names.includes(name.toLowerCase()))
  return { ...draft, headers: { ...Object.fromEntries(others), ...headers } }
}
