import { equalText, type HmacKey, hmac } from '#crypto'
import type { SignatureEncoding } from '../internal/crypto/encoding.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import { notVerified, type Verification } from './verifier.ts'

/** Maximum number of signatures that one delivery may carry: enough for a rotation, too few to make it expensive. */
export const maxSignatures = 16

/** The signed content, and the keys that may have signed it. */
export interface SignedContent {
  readonly keys: readonly HmacKey[]
  readonly encoding: SignatureEncoding
  /** The text that comes before the body in the signed content. */
  readonly prefix: string
  readonly body: Uint8Array
}

/** Returns `success` when any of the signatures, in the given encoding, was made with any of the keys. */
export function verifySignatures(
  signatures: readonly string[],
  { keys, encoding, prefix, body }: SignedContent,
  success: Verification,
): MaybePromise<Verification> {
  const expected = keys.map((key) => hmac(key, prefix, body, encoding) as MaybePromise<string>)
  return expected.some(isPromise)
    ? Promise.all(expected).then((texts) => judge(signatures, texts, success))
    : judge(signatures, expected as string[], success)
}

function judge(signatures: readonly string[], expected: readonly string[], success: Verification): Verification {
  for (const signature of signatures) {
    for (const text of expected) if (equalText(signature, text)) return success
  }
  return notVerified('no signature matches')
}

/**
 * Returns the reason to reject a Unix timestamp in seconds, or `undefined` if it is valid. The tolerance goes both
 * ways: a clock can be ahead as well as behind, and a signature from the future is not fresher.
 */
export function timestampFault(text: string, toleranceSeconds: number, now: () => number): string | undefined {
  if (!/^[0-9]{1,12}$/.test(text)) return 'the timestamp is malformed'
  const age = now() / 1000 - Number(text)
  // The condition is negated, so that a tolerance or a clock that is not a number fails.
  if (!(age <= toleranceSeconds)) return 'the timestamp is too old'
  if (!(age >= -toleranceSeconds)) return 'the timestamp is in the future'
  return undefined
}
