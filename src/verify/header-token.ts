import { WebhookError } from '../errors.ts'
import { checkHeaderName } from '../internal/check-options.ts'
import { matchCredential } from './credential.ts'
import { readSecrets, type Secrets, secretMatcher } from './secrets.ts'
import { refused, type Verifier } from './verifier.ts'

export interface HeaderTokenOptions {
  readonly secret: Secrets
  /** The header that carries the secret. */
  readonly header: string
  /**
   * What stands before the secret, such as `Bearer `; compared without regard to case, as HTTP does with schemes.
   * @defaultValue ''
   */
  readonly prefix?: string
}

/**
 * Accepts deliveries that carry a secret in a header.
 * @throws WebhookError `invalid_option` for an unusable secret.
 */
export function headerToken({ secret, header, prefix = '' }: HeaderTokenOptions): Verifier {
  checkHeaderName('headerToken', 'header', header)
  const secrets = readSecrets('headerToken', secret)
  if (secrets.some((each) => /[^\x20-\x7e]/.test(each))) {
    throw new WebhookError('invalid_option', 'headerToken: a header carries printable ASCII only, so must its secret')
  }
  const matches = secretMatcher(secrets)
  return {
    name: 'headerToken',
    needsBytes: false,
    verify({ headers }) {
      // A header sent twice arrives joined by a comma and so matches no secret.
      const value = headers.get(header)
      if (value !== null && value.slice(0, prefix.length).toLowerCase() !== prefix.toLowerCase()) {
        return refused(`header ${header} does not begin with its prefix`)
      }
      return matchCredential(`header ${header}`, value?.slice(prefix.length), matches)
    },
  }
}
