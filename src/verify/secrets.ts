import { WebhookError } from '../errors.ts'
import { isPlainObject } from '../internal/check-options.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import { notVerified, type SignedDelivery, type Verification, verified } from './verifier.ts'

/**
 * One secret, or several during a rotation: any of them is accepted. An object maps owners, such as tenants, to their
 * secrets; a delivery's principal is the owner whose secret verified it.
 */
export type Secrets = string | readonly string[] | { readonly [principal: string]: string | readonly string[] }

/**
 * Returns the secrets for one delivery, or `undefined` for none. Called for each delivery that carries a credential. If
 * it throws or rejects, the delivery is answered 503.
 * @param delivery its URL and headers, not verified yet
 */
export type GetSecrets = (delivery: Pick<SignedDelivery, 'url' | 'headers'>) => MaybePromise<Secrets | null | undefined>

export interface Secret {
  readonly text: string
  /** The result for a delivery verified with it. */
  readonly verification: Extract<Verification, { verified: true }>
}

/** Decides whether a credential, such as a token, was made with one of the secrets. */
type Check<Credential> = (credential: Credential) => MaybePromise<Verification>

/**
 * Returns a function that checks a delivery's credential. Checks and prepares static secrets once.
 * @throws WebhookError `invalid_option`
 */
export function checkWith<Credential>(
  verifier: string,
  secrets: Secrets | GetSecrets,
  prepare: (secrets: readonly Secret[]) => Check<Credential>,
): (credential: Credential, delivery: SignedDelivery) => MaybePromise<Verification> {
  if (typeof secrets !== 'function') return prepare(readSecrets(verifier, secrets))
  const label = `the secret function of ${verifier}`

  const unavailable = (error: unknown): Verification => {
    return { verified: false, unavailable: true, reason: `${label} threw`, error }
  }

  const check = (credential: Credential, given: Secrets | null | undefined): MaybePromise<Verification> => {
    if (given === undefined || given === null) return notVerified(`${label} returned no secret for this delivery`)
    let prepared: Check<Credential>
    try {
      prepared = prepare(readSecrets(label, given))
    } catch (error) {
      if (error instanceof WebhookError) return notVerified(error.message)
      throw error
    }
    return prepared(credential)
  }

  return (credential, { url, headers }) => {
    let given: ReturnType<GetSecrets>
    try {
      given = secrets({ url, headers })
    } catch (error) {
      return unavailable(error)
    }
    return isPromise(given)
      ? Promise.resolve(given).then((each) => check(credential, each), unavailable)
      : check(credential, given)
  }
}

/** @throws WebhookError `invalid_option`, naming the usual cause and never the secret */
export function readSecrets(verifier: string, secrets: Secrets): readonly Secret[] {
  // A boxed string would turn each character into a secret.
  if (!isPlainObject(secrets)) return readList(verifier, secrets)
  const named = Object.entries(secrets).flatMap(([principal, each]) => readList(verifier, each, principal))
  if (named.length === 0) return readList(verifier, undefined)
  if (Object.hasOwn(secrets as object, '')) throw invalid(`${verifier}: the name of a secret's owner is empty`)
  const owners = new Map<string, string | undefined>()
  for (const { text, verification } of named) {
    const { principal } = verification
    const other = owners.get(text) ?? principal
    if (other !== principal) throw invalid(`${verifier}: ${other} and ${principal} have the same secret`)
    owners.set(text, principal)
  }
  return named
}

function readList(verifier: string, secrets: unknown, principal?: string): readonly Secret[] {
  const list: readonly unknown[] = typeof secrets === 'string' ? [secrets] : Array.isArray(secrets) ? secrets : []
  const whose = principal === undefined ? '' : ` of ${principal}`
  if (list.length === 0) {
    throw invalid(`${verifier}: give a secret${whose}, or a list of them (is an environment variable unset?)`)
  }
  const verification = principal === undefined ? verified : Object.freeze({ ...verified, principal })
  return list.map((text, index) => {
    const fault = secretFault(text)
    if (fault === undefined) return { text: text as string, verification }
    throw invalid(`${verifier}: secret ${index + 1} of ${list.length}${whose && `,${whose},`} ${fault}`)
  })
}

const invalid = (message: string): WebhookError => new WebhookError('invalid_option', message)

function secretFault(secret: unknown): string | undefined {
  if (typeof secret !== 'string') return 'is not a string (is an environment variable unset?)'
  if (secret === '') return 'is empty (is an environment variable unset?)'
  // A PEM ends in a newline.
  if (secret.trim() !== secret && !secret.startsWith('-----BEGIN ')) {
    return 'begins or ends with white space (a newline at the end of the file or variable it was read from?)'
  }
  return undefined
}
