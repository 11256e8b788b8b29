import { WebhookError } from '../errors.ts'
import { checkChoice } from '../internal/check-options.ts'
import { matchCredential } from './credential.ts'
import { readSecrets, type Secrets, secretMatcher } from './secrets.ts'
import { refused, type Verifier } from './verifier.ts'

export interface UrlTokenOptions {
  /** The token, as it is before it is written into a URL. */
  readonly secret: Secrets
  /**
   * Where in the URL the secret stands: in the query, or as the last segment of the path. A secret with a slash has to
   * be percent-encoded there.
   * @defaultValue 'query'
   */
  readonly in?: 'query' | 'path'
  /**
   * The query parameter.
   * @defaultValue 'token'
   */
  readonly parameter?: string
}

/**
 * Accepts deliveries whose URL holds a secret, for a sender that signs nothing: register
 * `https://example.com/webhooks/media?token=…` as the webhook's URL.
 * @throws WebhookError `invalid_option` for an unusable secret.
 */
export function urlToken(options: UrlTokenOptions): Verifier {
  const { secret, in: place = 'query', parameter = 'token' } = options
  checkChoice('urlToken', 'in', place, ['query', 'path'])
  if (place === 'path' ? options.parameter !== undefined : !parameter) {
    throw new WebhookError('invalid_option', "urlToken: parameter names a query parameter, and goes with in 'query'")
  }
  const secrets = readSecrets('urlToken', secret)
  const matches = secretMatcher(place === 'query' ? secrets.map(spacesArePluses) : secrets)
  const read = place === 'query' ? (url: string) => queryTokens(url, parameter) : pathTokens
  return {
    name: 'urlToken',
    needsBytes: false,
    verify({ url }) {
      const tokens = read(url)
      if (tokens.length > 1) return refused(`the URL has several parameters named ${parameter}`)
      return matchCredential('the token in the URL', tokens[0], matches)
    },
  }
}

// A plus in a query may be itself or a space, depending on who wrote the URL: secrets in base64 hold pluses that were
// pasted as they are. To a token the two are the same.
const spacesArePluses = (text: string): string => text.replaceAll(' ', '+')

function queryTokens(url: string, parameter: string): string[] {
  const [, query] = /\?([^#]*)/.exec(url) ?? []
  return new URLSearchParams(query).getAll(parameter).map(spacesArePluses)
}

function pathTokens(url: string): string[] {
  const [path = ''] = url.split(/[?#]/, 1)
  try {
    return [decodeURIComponent(path.slice(path.lastIndexOf('/') + 1))]
  } catch {
    return []
  }
}
