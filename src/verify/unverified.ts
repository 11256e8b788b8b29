import { type Verifier, verified } from './verifier.ts'

/**
 * Accepts every delivery, for networks where something in front of the receiver verifies them. Any client that reaches
 * the receiver can forge one.
 */
export function unverified(): Verifier {
  return { name: 'unverified', needsBytes: false, verify: () => verified }
}
