import { lineFor } from '../../shared/schemes.ts'
import { plain } from '../../shared/text.ts'
import { credentialHeaders, urlTokens } from './credentials.ts'
import { findVerifiers, type ReceivedDelivery, timesIn } from './find-verifiers.ts'

/** Which verifier to use for a sender, given a delivery of it. */
export interface Advice {
  readonly text: string
  /** Lines of code to paste, the best one first. */
  readonly lines: readonly string[]
}

/** @param secret what the sender signs with, where it is known */
export async function advise(delivery: ReceivedDelivery, secret: string | undefined): Promise<Advice> {
  const proved = secret === undefined ? undefined : await adviseOnProof(delivery, secret)
  return proved ?? adviseOnLooks(delivery, secret !== undefined)
}

async function adviseOnProof(delivery: ReceivedDelivery, secret: string): Promise<Advice | undefined> {
  const found = await findVerifiers(delivery, secret)
  if (found.length > 0) return { text: 'It proves its sender. Accept it with', lines: found.map(lineFor) }
  for (const time of timesIn(delivery).map(([, value]) => Number(value))) {
    const then = await findVerifiers(delivery, secret, () => time * 1_000)
    const off = Math.round(Math.abs(Date.now() / 1_000 - time))
    const text = `It is signed with this secret, but its time differs from this machine's by ${off} s. In time it is accepted with`
    if (then.length > 0) return { text, lines: then.map(lineFor) }
  }
  return undefined
}

function adviseOnLooks(delivery: ReceivedDelivery, secretIsKnown: boolean): Advice {
  const [headers, tokens] = [credentialHeaders(delivery), urlTokens(delivery)]
  const places = [...headers.map((name) => `the header ${name}`), ...tokens.map(({ where }) => where)]
    .map(plain)
    .join(', ')
  if (places === '') {
    return {
      text: "Nothing is signed. Put a secret into the webhook's URL (…?token=<the secret>), and accept it with",
      lines: [lineFor({ scheme: 'url-token', secret: '' })],
    }
  }
  if (secretIsKnown) {
    const text = `It may be signed, by ${places}, but no verifier accepts it with this secret. Is it the right one?`
    return { text, lines: [] }
  }
  if (headers.length === 0) {
    return {
      text: `Its URL may hold a token: ${places}. If it does, accept it with`,
      lines: tokens.map(({ scheme }) => lineFor(scheme)),
    }
  }
  const text = `It may be signed, by ${places}. Give the secret (--secret or MEDIA_WEBHOOKS_SECRET) to find its verifier.`
  return { text, lines: [] }
}
