import { WebhookError } from '../errors.ts'
import { notVerified, type Verification, type Verifier } from './verifier.ts'

/**
 * Accepts deliveries that any of the verifiers accepts. Use it while you migrate from one scheme to another. Needs the
 * body's bytes if any verifier does. If only one scheme has an event id, set `eventKey` too: otherwise one event sent
 * under both schemes gets two keys.
 * @throws WebhookError `invalid_option` without a verifier.
 */
export function anyOf(...verifiers: readonly Verifier[]): Verifier {
  if (verifiers.length === 0 || verifiers.some((each) => typeof each?.verify !== 'function')) {
    throw new WebhookError('invalid_option', 'anyOf: give at least one verifier, and verifiers only')
  }
  return {
    name: `anyOf(${verifiers.map(({ name }) => name).join(', ')})`,
    needsBytes: verifiers.some(({ needsBytes }) => needsBytes !== false),
    withoutToken: (url) => verifiers.reduce((rest, each) => each.withoutToken?.(rest) ?? rest, url),
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
          // A verifier that throws rejects; ask the others. Its error may contain a secret.
          reasons.push(`${verifier.name}: threw a ${kindOf(error)}`)
        }
      }
      // One that couldn't decide might have accepted it: ask for a retry.
      return { ...outage, ...notVerified(reasons.join('; ')) }
    },
  }
}

function kindOf(error: unknown): string {
  try {
    return error instanceof Error ? error.name : typeof error
  } catch {
    // A throwing getter or a revoked proxy.
    return 'value'
  }
}
