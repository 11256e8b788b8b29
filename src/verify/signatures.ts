import { type HmacKey, hmac } from '#crypto'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import { equalText } from './equal-text.ts'
import type { SignatureEncoding } from './hmac-options.ts'
import { refused, type Verification } from './verifier.ts'

/** The most signatures one delivery may carry: enough for a rotation, too few to make it expensive. */
export const maxSignatures = 16

/** What a delivery's signatures have to be the HMAC of. */
export interface SignedContent {
  readonly keys: readonly HmacKey[]
  readonly encoding: SignatureEncoding
  /** What was signed before the body. */
  readonly prefix: string
  readonly body: Uint8Array
}

/** `success` when any of the signatures, in the given encoding, was made with any of the keys. */
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
  return refused('no signature matches')
}
