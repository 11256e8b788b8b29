import { WebhookError } from '../errors.ts'
import { notVerified, type Verification, type Verifier } from './verifier.ts'

/**
 * Accepts deliveries that any of the verifiers accepts, for a migration from one scheme to another. It needs the body's
 * bytes when one of them does. If only one of the schemes offers an event id, also set `eventKey`. Otherwise two
 * deliveries of one event, one in each scheme, have different keys.
 * @throws WebhookError `invalid_option` without a verifier.
 */
export function anyOf(...verifiers: readonly Verifier[]): Verifier {
  if (verifiers.length === 0 || verifiers.some((each) => typeof each?.verify !== 'function')) {
    throw new WebhookError('invalid_option', 'anyOf: give at least one verifier, and verifiers only')
  }
  return {
    name: `anyOf(${verifiers.map(({ name }) => name).join(', ')})`,
    needsBytes: verifiers.some(({ needsBytes }) => needsBytes !== false),
    async verify(delivery) {
      const reasons: string[] = []
      let outage: Verification | undefined
      for (const verifier of verifiers) {
        try {
          const verification = await verifier.verify(delivery)
          if (verification.verified === true) return verification
          reasons.push(`${verifier.name}: ${verification.reason}`)
          if (verification.unavailable === true) outage ??= verification
        } catch (error) {
          // A verifier that throws has not verified; the others are still asked. Its error may contain a secret.
          reasons.push(`${verifier.name}: it threw a ${kindOf(error)}`)
        }
      }
      // A verifier that could not decide might have verified it.
      return { ...outage, ...notVerified(reasons.join('; ')) }
    },
  }
}

function kindOf(error: unknown): string {
  try {
    return error instanceof Error ? error.name : typeof error
  } catch {
    // A getter that throws, or a revoked proxy.
    return 'value'
  }
}
