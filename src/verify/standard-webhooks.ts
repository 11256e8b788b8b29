import { type HmacKey, hmacKey } from '#crypto'
import { WebhookError } from '../errors.ts'
import { aFunction, checkedApart, checkOptions, oneOf, wholeNumber } from '../internal/check-options.ts'
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
   * What the names of the headers begin with: `svix` for services that send with Svix, such as Clerk.
   * @defaultValue 'webhook', as in the specification
   */
  readonly headers?: 'webhook' | 'svix'
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
 * Accepts deliveries with a symmetric (`v1`) Standard Webhooks signature. Their id becomes the event key.
 * @throws WebhookError `invalid_option` for a secret that is unusable or not base64.
 */
export function standardWebhooks(options: StandardWebhooksOptions): Verifier {
  checkOptions('standardWebhooks', options, {
    secret: checkedApart,
    headers: oneOf('webhook', 'svix'),
    toleranceSeconds: wholeNumber(),
    now: aFunction,
  })
  const { secret: secrets, headers: names = 'webhook', toleranceSeconds = 300, now = Date.now } = options ?? {}
  const [idHeader, timeHeader, signatureHeader] = [`${names}-id`, `${names}-timestamp`, `${names}-signature`]
  const check = checkWith('standardWebhooks', secrets, checkSignatures('base64', makeKey))

  return {
    name: 'standardWebhooks',
    needsBytes: true,
    verify(delivery) {
      const { headers, body } = delivery
      const id = headers.get(idHeader)
      const timestamp = headers.get(timeHeader)
      const signature = headers.get(signatureHeader)
      if (!id || !timestamp || !signature) {
        return notVerified(`one of the headers ${idHeader}, ${timeHeader} and ${signatureHeader} is missing`)
      }
      const fault = timestampFault(timestamp, toleranceSeconds, now)
      if (fault !== undefined) return notVerified(fault)
      const signatures = readSignatures(signature)
      if (signatures === undefined) return notVerified(`header ${signatureHeader} is malformed`)
      if (id.length > maxCredentialLength) return notVerified(`header ${idHeader} is too long`)
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
