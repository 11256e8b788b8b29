import { WebhookError } from '../errors.ts'
import { checkedApart, checkOptions, oneOf, text } from '../internal/check-options.ts'
import { credentialMatcher } from './credentials.ts'
import type { GetSecrets, Secrets } from './secrets.ts'
import { notVerified, type Verifier } from './verifier.ts'

/** The options of `urlToken`. */
export interface UrlTokenOptions {
  /** The token, before it is percent-encoded for a URL. */
  readonly secret: Secrets | GetSecrets
  /**
   * Where the URL contains the token: in the query, or as the last path segment, where a slash must be percent-encoded.
   * @defaultValue 'query'
   */
  readonly in?: 'query' | 'path'
  /** @defaultValue 'token' */
  readonly parameter?: string
}

/**
 * Accepts deliveries with a secret in the URL, for senders that sign nothing. Register
 * `https://example.com/webhooks/media?token=…` as the webhook's URL.
 * @throws WebhookError `invalid_option` for an unusable secret.
 */
export function urlToken(options: UrlTokenOptions): Verifier {
  checkOptions('urlToken', options, { secret: checkedApart, in: oneOf('query', 'path'), parameter: text })
  const { secret, in: part = 'query', parameter = 'token' } = options ?? {}
  if (part === 'path' && options.parameter !== undefined)
    throw new WebhookError('invalid_option', "urlToken: parameter works only with in 'query'")
  const match = credentialMatcher({
    verifier: 'urlToken',
    what: 'the token in the URL',
    secrets: secret,
    credentialOf: part === 'query' ? spacesArePluses : undefined,
  })
  const read = part === 'query' ? (url: string) => queryTokens(url, parameter) : pathTokens
  const withoutToken = part === 'query' ? (url: string) => withoutParameter(url, parameter) : withoutLastSegment
  return {
    name: 'urlToken',
    needsBytes: false,
    withoutToken,
    verify(delivery) {
      const tokens = read(delivery.url)
      if (tokens.length > 1) return notVerified(`the URL has several parameters named ${parameter}`)
      // Proxies and people append slashes.
      if (part === 'path' && tokens[0] === '')
        return notVerified('the token in the URL is missing: its path ends with a slash')
      return match(tokens[0], delivery)
    },
  }
}

// People paste base64 secrets unencoded, so a plus in the query may arrive as a space. Treat both as a plus.
const spacesArePluses = (text: string): string => text.replaceAll(' ', '+')

function queryTokens(url: string, parameter: string): string[] {
  return new URLSearchParams(/\?([^#]*)/.exec(url)?.[1]).getAll(parameter).map(spacesArePluses)
}

function pathTokens(url: string): string[] {
  const [path = ''] = url.split(/[?#]/, 1)
  try {
    return [decodeURIComponent(path.slice(path.lastIndexOf('/') + 1))]
  } catch {
    return []
  }
}

const withoutParameter = (url: string, parameter: string): string =>
  url.replace(/\?[^#]*/, (query) => {
    const kept = query
      .slice(1)
      .split('&')
      .filter((pair) => !new URLSearchParams(pair).has(parameter))
    return kept.length > 0 ? `?${kept.join('&')}` : ''
  })

function withoutLastSegment(url: string): string {
  const [path = ''] = url.split(/[?#]/, 1)
  return path.slice(0, path.lastIndexOf('/') + 1) + url.slice(path.length)
}
