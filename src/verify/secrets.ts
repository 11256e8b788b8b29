import { equalText, sha256 } from '#crypto'
import { WebhookError } from '../errors.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import { notVerified, type Verification, verified } from './verifier.ts'

/** One secret, or several while a rotation is under way: any of them is accepted. */
export type Secrets = string | readonly string[]

/**
 * Checks the secrets and returns them as a list.
 * @throws WebhookError `invalid_option`, naming the usual cause and never the secret
 */
export function readSecrets(verifier: string, secrets: Secrets): readonly string[] {
  const list: readonly unknown[] = typeof secrets === 'string' ? [secrets] : Array.isArray(secrets) ? secrets : []
  if (list.length === 0) {
    throw new WebhookError(
      'invalid_option',
      `${verifier}: give a secret, or a list of them (is an environment variable unset?)`,
    )
  }
  return list.map((secret, index) => {
    const fault = secretFault(secret)
    if (fault === undefined) return secret as string
    throw new WebhookError('invalid_option', `${verifier}: secret ${index + 1} of ${list.length} ${fault}`)
  })
}

function secretFault(secret: unknown): string | undefined {
  if (typeof secret !== 'string') return 'is not a string (is an environment variable unset?)'
  if (secret === '') return 'is empty (is an environment variable unset?)'
  if (secret.trim() !== secret) {
    return 'begins or ends with white space (a newline at the end of the file or variable it was read from?)'
  }
  return undefined
}

/** Maximum length of a credential, in characters. */
export const maxCredentialLength = 4096

/** Decides whether a candidate is one of the secrets. `undefined` and the empty string count as missing. */
export type MatchCredential = (candidate: string | undefined) => MaybePromise<Verification>

/**
 * Makes the function that compares a credential with the secrets. Its run time reveals nothing about them: it compares
 * digests of equal length, and compares every secret even after a match.
 * @param what names the credential in the reason
 */
export function credentialMatcher(what: string, secrets: readonly string[]): MatchCredential {
  let digests: readonly MaybePromise<string>[] | undefined
  const judge = ([candidate = '', ...expected]: readonly string[]): Verification => {
    let matches = 0
    for (const digest of expected) matches |= equalText(candidate, digest) ? 1 : 0
    return matches === 1 ? verified : notVerified(`${what} is wrong`)
  }

  return (candidate) => {
    if (candidate === undefined || candidate === '') return notVerified(`${what} is missing`)
    if (candidate.length > maxCredentialLength) return notVerified(`${what} is too long`)
    // They are made at the first delivery: Workers forbid digests at start-up.
    digests ??= secrets.map((secret) => sha256(secret))
    const all: readonly MaybePromise<string>[] = [sha256(candidate), ...digests]
    return all.some(isPromise) ? Promise.all(all).then(judge) : judge(all as string[])
  }
}
