import { WebhookError } from '../errors.ts'
import { matchCredential } from './credential.ts'
import { decodeBase64 } from './encoding.ts'
import { maxCredentialLength, readSecrets, type Secrets, secretMatcher } from './secrets.ts'
import { refused, type Verifier } from './verifier.ts'

export interface BasicAuthOptions {
  readonly username: string
  /** The password, or several while it is changed. */
  readonly password: Secrets
}

/**
 * Accepts deliveries with these Basic credentials (RFC 7617), which the service sends when the webhook's URL holds
 * them: `https://user:password@example.com/webhooks/media`.
 * @throws WebhookError `invalid_option` for an unusable password, or a username that is empty or holds a colon.
 */
export function basicAuth({ username, password }: BasicAuthOptions): Verifier {
  if (typeof username !== 'string' || username === '' || username.includes(':') || username.trim() !== username) {
    throw new WebhookError('invalid_option', 'basicAuth: give a username without a colon or white space at its ends')
  }
  const matches = secretMatcher(readSecrets('basicAuth', password).map((each) => `${username}:${each}`))
  return {
    name: 'basicAuth',
    needsBytes: false,
    verify({ headers }) {
      const value = headers.get('authorization')
      if (value === null) return refused('header authorization is missing')
      if (value.length > maxCredentialLength) return refused('header authorization is too long')
      const encoded = /^basic +(\S+)$/i.exec(value)?.[1]
      const credentials = encoded === undefined ? undefined : decodeBase64(encoded)
      if (credentials === undefined) return refused('header authorization holds no Basic credentials')
      return matchCredential('header authorization', new TextDecoder().decode(credentials), matches)
    },
  }
}
