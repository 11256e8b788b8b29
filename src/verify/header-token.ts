import { WebhookError } from '../errors.ts'
import { anyText, checkedApart, checkOptions, headerName, required } from '../internal/check-options.ts'
import { credentialMatcher } from './credentials.ts'
import type { GetSecrets, Secrets } from './secrets.ts'
import { notVerified, type Verifier } from './verifier.ts'

/** The options of `headerToken`. */
export interface HeaderTokenOptions {
  /** The token, or several while you change it. Printable ASCII only. */
  readonly secret: Secrets | GetSecrets
  /** The header with the secret. */
  readonly header: string
  /**
   * The text before the secret, such as `Bearer `. Case-insensitive, like HTTP auth schemes.
   * @defaultValue ''
   */
  readonly prefix?: string
}

/**
 * Accepts deliveries that carry a secret in a header.
 * @throws WebhookError `invalid_option` for an unusable secret.
 */
export function headerToken(options: HeaderTokenOptions): Verifier {
  checkOptions('headerToken', options, { secret: checkedApart, header: required(headerName), prefix: anyText })
  const { secret, header, prefix = '' } = options
  const match = credentialMatcher({
    verifier: 'headerToken',
    what: `header ${header}`,
    secrets: secret,
    credentialOf: printable,
  })
  return {
    name: 'headerToken',
    needsBytes: false,
    verify(delivery) {
      // A header sent twice arrives joined by a comma and matches no secret.
      const value = delivery.headers.get(header)
      if (value !== null && value.slice(0, prefix.length).toLowerCase() !== prefix.toLowerCase()) {
        return notVerified(`header ${header} does not begin with its prefix`)
      }
      return match(value?.slice(prefix.length), delivery)
    },
  }
}

function printable(secret: string): string {
  if (!/[^\x20-\x7e]/.test(secret)) return secret
  throw new WebhookError('invalid_option', 'headerToken: a secret in a header must be printable ASCII')
}
