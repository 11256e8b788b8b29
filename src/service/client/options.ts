import * as z from 'zod'
import { maxWaitMs } from '../../internal/timers.ts'
import { params, parseUrl, readOptions, wholeNumber } from './params.ts'

/** A key pair or a bearer token. The key pair wins if both are given, as in the emulator's `credentials`. */
export type ClientCredentials =
  | { readonly publicKey: string; readonly secretKey: string; readonly accessToken?: string }
  | { readonly accessToken: string; readonly publicKey?: undefined; readonly secretKey?: undefined }

/** The options of {@link createClient}. */
export interface ClientOptions {
  /** The service's http or https address, without `/api`. */
  readonly baseUrl: string
  /**
   * Time limit per attempt, from connecting to the end of the answer, in ms.
   * @defaultValue 10_000
   */
  readonly timeoutMs?: number
  /**
   * Retries per call, 0 to 10, made only where they are safe: always after 429; after 502, 503, 504 or no answer unless
   * the call creates something; never for `webhook.check`. Waits as long as the service asks, or else up to 0.5 s, 1 s,
   * 2 s … If the service asks for more than 60 s, the call fails at once.
   * @defaultValue 2
   */
  readonly retries?: number
  /** @defaultValue the `fetch` of the runtime */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>
}

export interface ClientConfig extends Required<ClientOptions> {
  readonly headers: Readonly<Record<string, string>>
  /** Must not appear in an error. */
  readonly secrets: readonly string[]
}

// Header-safe characters only: for any other, fetch throws an error that quotes the credential.
const credential = z.string({ error: 'must be a string (is an environment variable unset?)' }).regex(/^[\x21-\x7e]+$/, {
  error: 'must be visible ASCII characters (is it empty, or is there a newline at its end?)',
})

const keyPair = params({ publicKey: credential, secretKey: credential, accessToken: credential.optional() })
const bearer = params({ accessToken: credential })

const baseUrl = z.string({ error: 'must be the address of the service, as a string' }).transform((value, context) => {
  const url = parseUrl(value)
  const path = url?.pathname.replace(/\/+$/, '')
  const fault = faultOfBaseUrl(url, path)
  if (fault !== undefined) context.addIssue({ code: 'custom', message: fault })
  return `${url?.origin}${path}`
})

function faultOfBaseUrl(url: URL | undefined, path: string | undefined): string | undefined {
  if (!/^https?:$/.test(url?.protocol ?? '')) return 'must be an http or https URL, such as https://api.example.com'
  if (url?.username || url?.password) return 'must not contain credentials: give them separately'
  if (url?.search || url?.hash) return 'must not have a query or a fragment'
  return path?.endsWith('/api') ? 'must not end with /api' : undefined
}

const options = params({
  baseUrl,
  timeoutMs: wholeNumber(1, maxWaitMs).default(10_000),
  retries: wholeNumber(0, 10).default(2),
  fetch: z
    .custom<ClientConfig['fetch']>((value) => typeof value === 'function', { error: 'must be a function' })
    // Looked up per call, because tests and instrumentation replace the global. Called unbound, because some runtimes
    // throw otherwise.
    .default(() => (url: string, init: RequestInit) => globalThis.fetch(url, init)),
})

/** @throws WebhookError `invalid_option` */
export function readConfig(credentials: ClientCredentials, given: ClientOptions): ClientConfig {
  // Untyped callers may omit the options: the error then asks for `baseUrl`.
  return { ...readOptions('createClient', options, given ?? {}), ...readCredentials(credentials) }
}

function readCredentials(credentials: ClientCredentials): Pick<ClientConfig, 'headers' | 'secrets'> {
  // Untyped callers may pass nothing.
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
