import { type HmacKey, hmacKey } from '#crypto'
import { WebhookError } from '../errors.ts'
import { aFunction, checkedApart, checkOptions, wholeNumber } from '../internal/check-options.ts'
import { decodeBase64 } from '../internal/crypto/encoding.ts'
import { maxCredentialLength } from './credentials.ts'
import { checkWith, type GetSecrets, type Secrets } from './secrets.ts'
import { checkSignatures, maxSignatures, timestampFault } from './signatures.ts'
import { notVerified, type Verifier } from './verifier.ts'

/** The options of `standardWebhooks`. */
export interface StandardWebhooksOptions {
  /** `whsec_` followed by the key in base64. The prefix is optional. */
  readonly secret: Secrets | GetSecrets
  /**
   * Maximum difference between the signing time and now, in seconds.
   * @defaultValue 300, as the specification recommends
   */
  readonly toleranceSeconds?: number
  /**
   * The clock, in ms since the epoch.
   * @defaultValue Date.now
   */
  readonly now?: () => number
}

const secretPrefix = 'whsec_'
const version = 'v1,'

/**
 * Accepts deliveries with a symmetric (`v1`) Standard Webhooks signature. Their `webhook-id` becomes the event key.
 * @throws WebhookError `invalid_option` for a secret that is unusable or not base64.
 */
export function standardWebhooks(options: StandardWebhooksOptions): Verifier {
  checkOptions('standardWebhooks', options, { secret: checkedApart, toleranceSeconds: wholeNumber(), now: aFunction })
  const { secret: secrets, toleranceSeconds = 300, now = Date.now } = options ?? {}
  const check = checkWith('standardWebhooks', secrets, checkSignatures('base64', makeKey))

  return {
    name: 'standardWebhooks',
    needsBytes: true,
    verify(delivery) {
      const { headers, body } = delivery
      const id = headers.get('webhook-id')
      const timestamp = headers.get('webhook-timestamp')
      const signature = headers.get('webhook-signature')
      if (!id || !timestamp || !signature) {
        return notVerified('one of the headers webhook-id, webhook-timestamp and webhook-signature is missing')
      }
      const fault = timestampFault(timestamp, toleranceSeconds, now)
      if (fault !== undefined) return notVerified(fault)
      const signatures = readSignatures(signature)
      if (signatures === undefined) return notVerified('header webhook-signature is malformed')
      if (id.length > maxCredentialLength) return notVerified('header webhook-id is too long')
      const prefix = `${id}.${timestamp}.`
      return check({ signatures, prefix, body, eventId: id }, delivery)
    },
  }
}

function makeKey(secret: string): HmacKey {
  const bytes = decodeBase64(secret.startsWith(secretPrefix) ? secret.slice(secretPrefix.length) : secret)
  if (bytes !== undefined) return hmacKey('sha256', bytes)
  throw new WebhookError(
    'invalid_option',
    `standardWebhooks: a secret must be base64, after its prefix ${secretPrefix}`,
  )
}

// Space-separated. Skips other versions. One malformed entry rejects the header, as does sending it twice.
function readSignatures(value: string): readonly string[] | undefined {
  if (value.length > maxCredentialLength) return undefined
  const entries = value.split(' ')
  if (!entries.every((entry) => /^\w+,[^,]+$/.test(entry))) return undefined
  const signatures = entries.filter((entry) => entry.startsWith(version)).map((entry) => entry.slice(version.length))
  if (signatures.length === 0 || signatures.length > maxSignatures) return undefined
  return signatures.every((signature) => decodeBase64(signature) !== undefined) ? signatures : undefined
}
