import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import { maxCredentialLength } from './secrets.ts'
import { refused, type Verification, verified } from './verifier.ts'

/** The verification of something that has to be equal to a secret. `what` names it in the reason. */
export function matchCredential(
  what: string,
  candidate: string | null | undefined,
  matches: (candidate: string) => MaybePromise<boolean>,
): MaybePromise<Verification> {
  if (candidate === null || candidate === undefined || candidate === '') return refused(`${what} is missing`)
  if (candidate.length > maxCredentialLength) return refused(`${what} is too long`)
  const judge = (matched: boolean) => (matched ? verified : refused(`${what} is wrong`))
  const matched = matches(candidate)
  return isPromise(matched) ? matched.then(judge) : judge(matched)
}
