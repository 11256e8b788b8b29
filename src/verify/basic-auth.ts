import { WebhookError } from '../errors.ts'
import { checkedApart, checkOptions } from '../internal/check-options.ts'
import { decodeBase64 } from '../internal/crypto/encoding.ts'
import { decoder } from '../internal/utf8.ts'
import { credentialMatcher, maxCredentialLength } from './credentials.ts'
import type { GetSecrets, Secrets } from './secrets.ts'
import { notVerified, type Verifier } from './verifier.ts'

/** The options of `basicAuth`. */
export interface BasicAuthOptions {
  /** The user name, without a colon. */
  readonly username: string
  /** The password, or several while you change it. */
  readonly password: Secrets | GetSecrets
}

/**
 * Accepts deliveries with these Basic credentials (RFC 7617). The service sends them when the webhook's URL contains
 * them: `https://user:password@example.com/webhooks/media`.
 * @throws WebhookError `invalid_option` for an unusable password, or a username that is empty or contains a colon.
 */
export function basicAuth(options: BasicAuthOptions): Verifier {
  checkOptions('basicAuth', options, { username: checkedApart, password: checkedApart })
  const { username, password } = options ?? {}
  if (typeof username !== 'string' || username === '' || username.includes(':') || username.trim() !== username) {
    throw new WebhookError('invalid_option', 'basicAuth: give a username without a colon or white space at its ends')
  }
  const match = credentialMatcher({
    verifier: 'basicAuth',
    what: 'header authorization',
    secrets: password,
    credentialOf: (each) => `${username}:${each}`,
  })
  return {
    name: 'basicAuth',
    needsBytes: false,
    verify(delivery) {
      const value = delivery.headers.get('authorization')
      if (value === null) return notVerified('header authorization is missing')
      if (value.length > maxCredentialLength) return notVerified('header authorization is too long')
      const bytes = decodeBase64(/^basic +(\S+)$/i.exec(value)?.[1] ?? '')
      if (bytes === undefined) return notVerified('header authorization has no Basic credentials')
      return match(decoder.decode(bytes), delivery)
    },
  }
}
