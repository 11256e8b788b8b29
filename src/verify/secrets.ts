import { sha256 } from '#crypto'
import { WebhookError } from '../errors.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import { equalText } from './equal-text.ts'

/** One secret, or several while a rotation is under way: any of them is accepted. */
export type Secrets = string | readonly string[]

/**
 * The secrets as a list, once each has proved usable.
 * @throws WebhookError `invalid_option`, naming the usual cause and never the secret.
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

/** The longest credential that is looked at, in characters. */
export const maxCredentialLength = 4096

/**
 * Says whether a candidate is one of the secrets, in a time that tells nothing of them: digests of one length are
 * compared, and every secret is, whichever matches.
 */
export function secretMatcher(secrets: readonly string[]): (candidate: string) => MaybePromise<boolean> {
  let digests: readonly MaybePromise<string>[] | undefined
  return (candidate) => {
    // Made at the first delivery, since Workers forbid digests at start-up.
    digests ??= secrets.map((secret) => sha256(secret))
    const all: readonly MaybePromise<string>[] = [sha256(candidate), ...digests]
    return all.some(isPromise) ? Promise.all(all).then(matchesAny) : matchesAny(all as string[])
  }
}

function matchesAny([candidate = '', ...secrets]: readonly string[]): boolean {
  let matches = 0
  for (const secret of secrets) matches |= equalText(candidate, secret) ? 1 : 0
  return matches === 1
}
