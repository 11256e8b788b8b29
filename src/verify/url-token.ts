import { checkChoice } from '../check-options.ts'
import { matchCredential } from './credential.ts'
import { readSecrets, type Secrets, secretMatcher } from './secrets.ts'
import { refused, type Verifier } from './verifier.ts'

export interface UrlTokenOptions {
  readonly secret: Secrets
  /**
   * Where in the URL the secret stands: in the query, or as the last segment of the path.
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
export function urlToken({ secret, in: place = 'query', parameter = 'token' }: UrlTokenOptions): Verifier {
  checkChoice('urlToken', 'in', place, ['query', 'path'])
  const matches = secretMatcher(readSecrets('urlToken', secret))
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

function queryTokens(url: string, parameter: string): string[] {
  const start = url.indexOf('?')
  return start === -1 ? [] : new URLSearchParams(url.slice(start + 1)).getAll(parameter)
}

function pathTokens(url: string): string[] {
  const path = url.split(/[?#]/, 1)[0] as string
  try {
    return [decodeURIComponent(path.slice(path.lastIndexOf('/') + 1))]
  } catch {
    return []
  }
}
