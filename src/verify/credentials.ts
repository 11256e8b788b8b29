import { equalText, sha256 } from '#crypto'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import { checkWith, type GetSecrets, type Secret, type Secrets } from './secrets.ts'
import { notVerified, type SignedDelivery, type Verification } from './verifier.ts'

/** Maximum length of a credential, in characters. */
export const maxCredentialLength = 4096

/** How a verifier derives its credential from a secret. */
interface CredentialOptions {
  readonly verifier: string
  /** Names the credential in rejection reasons. */
  readonly what: string
  readonly secrets: Secrets | GetSecrets
  /** Derives the credential from a secret. Throws `invalid_option` for a secret that can't be used. */
  readonly credentialOf?: ((secret: string) => string) | undefined
}

/** Compares a candidate with the credentials. `undefined` and the empty string count as missing. */
type MatchCredential = (candidate: string | undefined, delivery: SignedDelivery) => MaybePromise<Verification>

export function credentialMatcher(options: CredentialOptions): MatchCredential {
  const { verifier, what, secrets, credentialOf = (secret) => secret } = options
  const compare = checkWith(verifier, secrets, (all) =>
    comparison(
      what,
      all.map(({ text, verification }) => ({ text: credentialOf(text), verification })),
    ),
  )
  return (candidate, delivery) => {
    if (candidate === undefined || candidate === '') return notVerified(`${what} is missing`)
    if (candidate.length > maxCredentialLength) return notVerified(`${what} is too long`)
    return compare(candidate, delivery)
  }
}

/** Timing-safe: compares digests of equal length, and every secret even after a match. */
function comparison(what: string, secrets: readonly Secret[]): (candidate: string) => MaybePromise<Verification> {
  let digests: readonly MaybePromise<string>[] | undefined
  const check = ([candidate = '', ...expected]: readonly string[]): Verification => {
    let match: Secret | undefined
    for (let i = 0; i < expected.length; i++) if (equalText(candidate, expected[i] as string)) match = secrets[i]
    return match?.verification ?? notVerified(`${what} is wrong`)
  }

  return (candidate) => {
    // Lazy: Workers forbid digests at start-up.
    digests ??= secrets.map(({ text }) => sha256(text))
    const all: readonly MaybePromise<string>[] = [sha256(candidate), ...digests]
    return all.some(isPromise) ? Promise.all(all).then(check) : check(all as string[])
  }
}
