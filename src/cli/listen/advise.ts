import { lineFor } from '../schemes.ts'
import { plain } from '../text.ts'
import { credentialsOf } from './credentials.ts'
import { findVerifiers, type ReceivedDelivery } from './find-verifiers.ts'

/** Which verifier to use for a sender, given a delivery of it. */
export interface Advice {
  readonly text: string
  /** Lines of code to paste, the best one first. */
  readonly lines: readonly string[]
}

/** @param secret what the sender signs with, where it is known */
export async function advise(delivery: ReceivedDelivery, secret: string | undefined): Promise<Advice> {
  const found = secret === undefined ? [] : await findVerifiers(delivery, secret)
  if (found.length > 0) return { text: 'It proves its sender. Accept it with', lines: found.map(lineFor) }
  const credentials = credentialsOf(delivery).map(plain).join(', ')
  if (credentials === '') {
    return {
      text: "Nothing is signed. Put a secret into the webhook's URL (…?token=<the secret>), and accept it with",
      lines: [lineFor({ scheme: 'url-token', secret: '' })],
    }
  }
  if (secret === undefined) {
    const text = `It may be signed, by ${credentials}. Give the secret (--secret or MEDIA_WEBHOOKS_SECRET) to find its verifier.`
    return { text, lines: [] }
  }
  const text = `It may be signed, by ${credentials}, but no verifier accepts it with this secret. Is it the right one?`
  return { text, lines: [] }
}
