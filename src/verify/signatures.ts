import { equalBytes, type HmacKey, hmac } from '#crypto'
import { isPromise, type MaybePromise } from '../maybe-promise.ts'
import { refused, type Verification } from './verifier.ts'

/** The most signatures one delivery may carry: enough for a rotation, too few to make it expensive. */
export const maxSignatures = 16

/** `success` when any of the signatures is the HMAC, under any of the keys, of `prefix` followed by `body`. */
export function verifySignatures(
  keys: readonly HmacKey[],
  signatures: readonly Uint8Array[],
  prefix: string,
  body: Uint8Array,
  success: Verification,
): MaybePromise<Verification> {
  const judge = (macs: readonly Uint8Array[]): Verification =>
    macs.some((mac) => signatures.some((signature) => equalBytes(mac, signature)))
      ? success
      : refused('no signature matches')
  const macs: readonly MaybePromise<Uint8Array>[] = keys.map((key) => hmac(key, prefix, body))
  return macs.some(isPromise) ? Promise.all(macs).then(judge) : judge(macs as Uint8Array[])
}
