import { hmac, hmacKey } from '#crypto'
import { WebhookError } from '../errors.ts'
import { decodeBase64, encodeBytes } from '../internal/crypto/encoding.ts'
import { encoder } from '../internal/utf8.ts'
import { type BasicAuthOptions, basicAuth } from '../verify/basic-auth.ts'
import { type HeaderTokenOptions, headerToken } from '../verify/header-token.ts'
import { type HmacSignatureOptions, hmacSignature } from '../verify/hmac-signature.ts'
import { type GetSecrets, readSecrets, type Secrets } from '../verify/secrets.ts'
import { type StandardWebhooksOptions, standardWebhooks } from '../verify/standard-webhooks.ts'
import { type TimestampedSignatureOptions, timestampedSignature } from '../verify/timestamped-signature.ts'
import { type UrlTokenOptions, urlToken } from '../verify/url-token.ts'

/** The parts of a delivery that a signer reads and changes. */
export interface Draft {
  /** The URL of the request. `signWithUrlToken` changes it. */
  readonly url: string
  /** The header fields by name. */
  readonly headers: Readonly<Record<string, string>>
  /** The exact bytes of the body. */
  readonly body: Uint8Array
}

/**
 * Signs a delivery as the sender would, so that the verifier with the same options accepts it. It returns a new draft.
 */
export type Signer = (draft: Draft) => Promise<Draft>

/**
 * Creates a signer for the verifier `urlToken` with the same options. It replaces a token that is already in the URL.
 */
export function signWithUrlToken(options: UrlTokenOptions): Signer {
  urlToken(options)
  const { secret, in: part = 'query', parameter = 'token' } = options
  const tokens = textsOf(secret)
  const token = encodeURIComponent(tokens[0] as string)
  return async (draft) => {
    const [, path = '', query = '', hash = ''] = /^([^?#]*)(\?[^#]*)?(#.*)?$/s.exec(draft.url) ?? []
    if (part === 'path') return { ...draft, url: `${pathWithToken(path, token, tokens)}${query}${hash}` }
    return { ...draft, url: `${path}?${queryWithToken(query.slice(1), token, parameter)}${hash}` }
  }
}

/** Appends a token, unless the last segment of the path is one of the tokens: then it replaces that segment. */
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

/** Replaces the parameter with a token, or appends it. The rest of the query stays as it is written. */
function queryWithToken(query: string, token: string, parameter: string): string {
  const entry = `${encodeURIComponent(parameter)}=${token}`
  if (query === '') return entry
  const entries = query.split('&')
  // An ampersand keeps URLSearchParams from removing a question mark, which it does at the start of a query only.
  const isToken = (each: string, index: number) => new URLSearchParams(index === 0 ? each : `&${each}`).has(parameter)
  const at = entries.findIndex(isToken)
  if (at === -1) return `${query}&${entry}`
  return entries.flatMap((each, index) => (index === at ? [entry] : isToken(each, index) ? [] : [each])).join('&')
}

/** Creates a signer for the verifier `headerToken` with the same options. */
export function signWithHeaderToken(options: HeaderTokenOptions): Signer {
  headerToken(options)
  const { secret, header, prefix = '' } = options
  return async (draft) => withHeaders(draft, { [header]: `${prefix}${firstOf(secret)}` })
}

/** Creates a signer for the verifier `basicAuth` with the same options. */
export function signWithBasicAuth(options: BasicAuthOptions): Signer {
  basicAuth(options)
  const { username, password } = options
  const credentials = encodeBytes(encoder.encode(`${username}:${firstOf(password)}`), 'base64')
  return async (draft) => withHeaders(draft, { authorization: `Basic ${credentials}` })
}

/** Creates a signer for the verifier `hmacSignature` with the same options. It signs the time of `now`. */
export function signWithHmac(options: HmacSignatureOptions): Signer {
  hmacSignature(options)
  const { header, algorithm = 'sha256', encoding = 'hex', prefix = '', timestamp, now = Date.now } = options
  const { signedContent = timestamp === undefined ? 'body' : 'timestamp.body' } = options
  const key = hmacKey(algorithm, encoder.encode(firstOf(options.secret)))
  return async (draft) => {
    const time = unixSeconds(now)
    const signature = await hmac(key, signedContent === 'body' ? '' : `${time}.`, draft.body, encoding)
    return withHeaders(draft, {
      [header]: `${prefix}${signature}`,
      ...(timestamp && { [timestamp.header]: time }),
    })
  }
}

/**
 * Creates a signer for the verifier `standardWebhooks` with the same options. It signs the time of `now`.
 * @param options.id the id of the event (default: a sample)
 */
export function signWithStandardWebhooks(options: StandardWebhooksOptions & { readonly id?: string }): Signer {
  const { id = 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W', ...verifierOptions } = options ?? {}
  standardWebhooks(verifierOptions)
  const { now = Date.now } = options
  const key = hmacKey('sha256', decodeBase64(firstOf(options.secret).replace(/^whsec_/, '')) ?? new Uint8Array())
  return async (draft) => {
    const time = unixSeconds(now)
    const signature = await hmac(key, `${id}.${time}.`, draft.body, 'base64')
    return withHeaders(draft, {
      'webhook-id': id,
      'webhook-timestamp': time,
      'webhook-signature': `v1,${signature}`,
    })
  }
}

/** Creates a signer for the verifier `timestampedSignature` with the same options. It signs the time of `now`. */
export function signWithTimestampedSignature(options: TimestampedSignatureOptions): Signer {
  timestampedSignature(options)
  const { secret, header, time: timeName = 't', signature: signatureName = 'v1', now = Date.now } = options
  const key = hmacKey('sha256', encoder.encode(firstOf(secret)))
  return async (draft) => {
    const time = unixSeconds(now)
    const signature = await hmac(key, `${time}.`, draft.body, 'hex')
    return withHeaders(draft, { [header]: `${timeName}=${time},${signatureName}=${signature}` })
  }
}

// A sender signs with a single secret, the newest.
const firstOf = (secrets: Secrets | GetSecrets): string => textsOf(secrets)[0] as string

function textsOf(secrets: Secrets | GetSecrets): readonly string[] {
  if (typeof secrets !== 'function') return readSecrets('signer', secrets).map(({ text }) => text)
  throw new WebhookError('invalid_option', 'signer: give the secret to sign with, and not the function of the verifier')
}

const unixSeconds = (now: () => number): string => String(Math.floor(now() / 1000))

/** Sets header fields. A field replaces one of the same name, in upper or lower case. */
function withHeaders(draft: Draft, headers: Record<string, string>): Draft {
  const names = Object.keys(headers).map((name) => name.toLowerCase())
  const others = Object.entries(draft.headers).filter(([name]) => !names.includes(name.toLowerCase()))
  return { ...draft, headers: { ...Object.fromEntries(others), ...headers } }
}
