import { equalText, type HmacKey, hmac } from '#crypto'
import type { SignatureEncoding } from '../internal/crypto/encoding.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import type { Secret } from './secrets.ts'
import type { SignedContent } from './signed-content.ts'
import { notVerified, type Verification } from './verifier.ts'

/** Signatures per delivery: enough for a rotation, too few to be expensive. */
export const maxSignatures = 16

/** The signatures of a delivery and what they sign. */
export interface Signed extends SignedContent {
  readonly signatures: readonly string[]
  /** An event id covered by the signatures. */
  readonly eventId?: string
}

/** Returns a function that checks signatures: any of them may match any of the secrets. */
export const checkSignatures =
  (encoding: SignatureEncoding, makeKey: (secret: string) => HmacKey) => (secrets: readonly Secret[]) => {
    const keys = secrets.map(({ text }) => makeKey(text))
    return (signed: Signed): MaybePromise<Verification> => {
      const expected = keys.map((key) => hmac(key, signed.prefix, signed.body, encoding) as MaybePromise<string>)
      return expected.some(isPromise)
        ? Promise.all(expected).then((texts) => check(signed, texts, secrets))
        : check(signed, expected as string[], secrets)
    }
  }

function check({ signatures, eventId }: Signed, expected: readonly string[], secrets: readonly Secret[]): Verification {
  for (const signature of signatures) {
    const index = expected.findIndex((text) => equalText(signature, text))
    const verification = secrets[index]?.verification
    if (verification !== undefined) return eventId === undefined ? verification : { ...verification, eventId }
  }
  return notVerified('no signature matches')
}

/**
 * Returns why a Unix timestamp (seconds) is rejected, or `undefined` if it is valid. The tolerance applies both ways:
 * clocks run ahead as well as behind, and a signature from the future is no fresher.
 */
export function timestampFault(text: string, toleranceSeconds: number, now: () => number): string | undefined {
  if (!/^[0-9]{1,12}$/.test(text)) return 'the timestamp is malformed'
  const age = now() / 1000 - Number(text)
  // Negated, so NaN in the tolerance or the clock fails.
  if (!(age <= toleranceSeconds)) return 'the timestamp is too old'
  if (!(age >= -toleranceSeconds)) return 'the timestamp is in the future'
  return undefined
}
