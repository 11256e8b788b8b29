import { WebhookError } from '../errors.ts'
import { refused, type Verifier } from './verifier.ts'

/**
 * Accepts what any of the verifiers accepts, for a migration from one scheme to another. It needs the body's bytes
 * when one of them does.
 * @throws WebhookError `invalid_option` without a verifier.
 */
export function anyOf(...verifiers: readonly Verifier[]): Verifier {
  if (verifiers.length === 0) throw new WebhookError('invalid_option', 'anyOf: give at least one verifier')
  return {
    name: `anyOf(${verifiers.map(({ name }) => name).join(', ')})`,
    needsBytes: verifiers.some(({ needsBytes }) => needsBytes),
    async verify(delivery) {
      const reasons: string[] = []
      for (const verifier of verifiers) {
        try {
          const verification = await verifier.verify(delivery)
          if (verification.verified === true) return verification
          reasons.push(`${verifier.name}: ${verification.reason}`)
        } catch {
          // Refusing is what a verifier that throws does; the others still have a say.
          reasons.push(`${verifier.name}: it threw`)
        }
      }
      return refused(reasons.join('; '))
    },
  }
}
