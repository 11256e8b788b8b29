import { credentialHeaders, urlTokens } from '../../shared/credentials.ts'
import { lineFor } from '../../shared/schemes.ts'
import { plain } from '../../shared/text.ts'
import { codeFor, describeDigest, type FoundDigest, findDigest } from './find-digest.ts'
import { findVerifiers, type ReceivedDelivery, timesIn } from './find-verifiers.ts'

/** Which verifier to use, judged by one delivery. */
export interface Advice {
  readonly text: string
  /** Code to paste, the best first. */
  readonly lines: readonly string[]
  /** The first line, if it was proved by the signature. */
  readonly proved?: string | undefined
}

/** @param secret the sender's secret, if known */
export async function advise(delivery: ReceivedDelivery, secret: string | undefined): Promise<Advice> {
  const proved = secret === undefined ? undefined : await adviseFromProof(delivery, secret)
  return proved ? { ...proved, proved: proved.lines[0] } : adviseFromLooks(delivery, secret !== undefined)
}

async function adviseFromProof(delivery: ReceivedDelivery, secret: string): Promise<Advice | undefined> {
  const found = await findVerifiers(delivery, secret)
  if (found.length > 0) return { text: 'The delivery proves its sender. Verify it with:', lines: found.map(lineFor) }
  for (const time of timesIn(delivery)) {
    const then = await findVerifiers(delivery, secret, () => time * 1_000)
    const off = Math.round(Math.abs(Date.now() / 1_000 - time))
    const text = `It is signed with this secret, but its time is ${off} s off this machine's clock. Fix the clock, then verify it with:`
    if (then.length > 0) return { text, lines: then.map(lineFor) }
  }
  const digest = findDigest(delivery, secret)
  return digest && adviseFromDigest(digest)
}

/** For a form of signature that no verifier of the package reads by itself. */
function adviseFromDigest(digest: FoundDigest): Advice {
  const described = `The delivery proves its sender. ${plain(describeDigest(digest))}`
  const code = codeFor(digest)
  if (code !== undefined) return { text: `${described} Verify it with:`, lines: [code] }
  return { text: `${described} No verifier of this package does that: write your own.`, lines: [] }
}

function adviseFromLooks(delivery: ReceivedDelivery, secretIsKnown: boolean): Advice {
  const [headers, tokens] = [credentialHeaders(delivery), urlTokens(delivery)]
  const places = [...headers.map((name) => `the header ${name}`), ...tokens.map(({ where }) => where)]
    .map(plain)
    .join(', ')
  if (places === '') {
    return {
      text: "Nothing is signed. Put a secret into the webhook's URL (…?token=<the secret>), and verify it with:",
      lines: [lineFor({ scheme: 'url-token', secret: '' })],
    }
  }
  if (secretIsKnown) {
    const text = `The delivery may be signed, by ${places}, but no verifier accepts it with this secret. Is it the right secret?`
    return { text, lines: [] }
  }
  if (headers.length === 0) {
    return {
      text: `The URL may contain a token: ${places}. If it does, verify it with:`,
      lines: tokens.map(({ scheme }) => lineFor(scheme)),
    }
  }
  const text = `The delivery may be signed, by ${places}. Give the secret (--secret or MEDIA_WEBHOOKS_SECRET) to find its verifier.`
  return { text, lines: [] }
}
