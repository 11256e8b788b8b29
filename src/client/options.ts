import * as z from 'zod'
import { longestWaitMs } from '../internal/timers.ts'
import { params, parseUrl, readOptions, wholeNumber } from './params.ts'

/** A key pair, or a bearer token; of both, as the emulator gives them, the key pair is used. */
export type ClientCredentials =
  | { readonly publicKey: string; readonly secretKey: string; readonly accessToken?: string }
  | { readonly accessToken: string; readonly publicKey?: undefined; readonly secretKey?: undefined }

/** The options of {@link createClient}. */
export interface ClientOptions {
  /** The service's base address, http or https, without `/api`. */
  readonly baseUrl: string
  /**
   * How long an attempt may take, from connecting to the end of the answer, in ms.
   * @defaultValue 10_000
   */
  readonly timeoutMs?: number
  /**
   * How often a call is made again when that is safe: after 429 always; without an answer, or after 502, 503 and 504,
   * unless it creates or triggers something. Pauses are what the service asks for (up to 60 s; when it asks for more the
   * call fails at once), otherwise up to 0.5 s, 1 s, 2 s …
   * @defaultValue 2
   */
  readonly retries?: number
  /** @defaultValue the runtime's */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>
}

/** What a client is made of, once everything has proved usable. */
export interface ClientConfig extends Required<ClientOptions> {
  readonly headers: Readonly<Record<string, string>>
  /** What must not appear in an error, whoever wrote its text. */
  readonly secrets: readonly string[]
}

// What a header can carry. Others would throw in fetch, which quotes them.
const credential = z.string({ error: 'has to be a text (is an environment variable unset?)' }).regex(/^[\x21-\x7e]+$/, {
  error: 'has to be visible ASCII characters, and is empty or has others (a newline at its end?)',
})

const keyPair = params({ publicKey: credential, secretKey: credential, accessToken: credential.optional() })
const bearer = params({ accessToken: credential })

const baseUrl = z
  .string({ error: 'has to be the base address of the service, as a text' })
  .transform((value, context) => {
    const url = parseUrl(value)
    const path = url?.pathname.replace(/\/+$/, '')
    const fault = faultOfBaseUrl(url, path)
    if (fault !== undefined) context.addIssue({ code: 'custom', message: fault })
    return `${url?.origin}${path}`
  })

function faultOfBaseUrl(url: URL | undefined, path: string | undefined): string | undefined {
  if (!/^https?:$/.test(url?.protocol ?? '')) return 'has to be an http or https URL, such as https://api.example.com'
  if (url?.username || url?.password) return 'must not hold credentials: they are given apart from it'
  if (url?.search || url?.hash) return 'must not have a query or a fragment'
  return path?.endsWith('/api') ? 'is given without /api' : undefined
}

const options = params({
  baseUrl,
  timeoutMs: wholeNumber(1, longestWaitMs).default(10_000),
  retries: wholeNumber(0, 10).default(2),
  fetch: z
    .custom<ClientConfig['fetch']>((value) => typeof value === 'function', { error: 'has to be a function' })
    // Looked up at each call: it may be replaced, and some runtimes reject it as another object's method.
    .default(() => (url: string, init: RequestInit) => globalThis.fetch(url, init)),
})

/** @throws WebhookError `invalid_option` */
export function readConfig(credentials: ClientCredentials, given: ClientOptions): ClientConfig {
  return { ...readOptions('createClient', options, given), ...readCredentials(credentials) }
}

function readCredentials(credentials: ClientCredentials): Pick<ClientConfig, 'headers' | 'secrets'> {
  // Callers without types may give nothing at all.
  const { publicKey, secretKey, ...rest } = credentials ?? {}
  if (rest.accessToken !== undefined && publicKey === undefined && secretKey === undefined) {
    const { accessToken } = readOptions('createClient', bearer, rest)
    return { headers: { authorization: `Bearer ${accessToken}` }, secrets: [accessToken] }
  }
  const pair = readOptions('createClient', keyPair, { publicKey, secretKey, ...rest })
  return {
    headers: { 'stream-public-key': pair.publicKey, 'stream-secret-key': pair.secretKey },
    secrets: [pair.secretKey],
  }
}
