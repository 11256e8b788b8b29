import { randomBytes } from 'node:crypto'
import { type SigningOptions, signerFor } from '../../../service/emulator/sending/signing.ts'
import type { Signer } from '../../../testing/signers.ts'
import { looksSecret } from '../../shared/mask.ts'
import { hasTokenInPath, signsBody } from '../../shared/schemes.ts'
import { credentialsIn } from './credentials.ts'
import { type Endpoint, unsigned } from './endpoint.ts'
import { type Finding, inWords, isUnauthorized, mustBeUnauthorized, mustReject, ok, wasAccepted } from './finding.ts'

export async function* rejectsForgeries(endpoint: Endpoint): AsyncIterable<Finding> {
  yield* endpoint.scheme === undefined ? rejectsWrongUrls(endpoint) : rejectsUnsigned(endpoint, endpoint.scheme)
}

const tokenFix =
  'anyone who knows the URL can forge events. Set verify: urlToken({ secret: process.env.MEDIA_WEBHOOKS_SECRET! }), and register the URL with ?token=<the secret>'

// The last path segment may be an ordinary name. An open endpoint must not pass as one with a secret path.
const pathFix = '. If the end of the path is the secret, leave it out of the URL and give --verify url-token --in path'

/** Replaces one credential at a time. Parameters that are no credential may have any value. */
async function* rejectsWrongUrls(endpoint: Endpoint): AsyncIterable<Finding> {
  const { url, open } = endpoint
  const send = (target: string) => endpoint.deliver(endpoint.newEvent(), { url: target })
  // `open`: the user said it accepts unsigned deliveries on purpose.
  const verdict = open ? 'warning' : 'failed'
  const fix = looksSecret(new URL(url).pathname.split('/').at(-1) ?? '') ? tokenFix + pathFix : tokenFix

  const credentials = credentialsIn(url)
  if (credentials.length === 0) {
    yield mustReject('rejects a delivery without credentials', await send(url), fix, verdict)
    return
  }
  const forged = []
  for (const credential of credentials) forged.push({ ...credential, reply: await send(credential.wrong) })
  const checked = forged.filter(({ reply }) => isUnauthorized(reply))
  for (const { what, reply, without } of checked) {
    yield ok(`rejects a delivery with a wrong ${what} in its URL`, inWords(reply))
    yield mustReject(`rejects a delivery without the ${what} in its URL`, await send(without), fix, verdict)
  }
  const [first] = forged
  if (checked.length > 0 || first === undefined) return
  const { reply } = forged.find((each) => wasAccepted(each.reply)) ?? first
  const what = forged.length === 1 ? `a wrong ${first.what}` : 'wrong credentials'
  yield mustBeUnauthorized(`rejects a delivery with ${what} in its URL`, reply, fix, {
    accepted: verdict,
    other: verdict,
  })
}

interface Forgery {
  /** Follows 'rejects a delivery'. */
  readonly what: string
  readonly sign: Signer
  /** Verdict for a 4xx other than 401 and 403. */
  readonly other: Finding['verdict']
}

async function* rejectsUnsigned(endpoint: Endpoint, scheme: SigningOptions): AsyncIterable<Finding> {
  const fix = 'verify each delivery before anything else, and answer 401 if it is not verified'
  for (const { what, sign, other } of forgeries(scheme)) {
    const reply = await endpoint.deliver(endpoint.newEvent(), { sign })
    yield mustBeUnauthorized(`rejects a delivery ${what}`, reply, fix, { accepted: 'failed', other })
  }
}

function forgeries(scheme: SigningOptions): Forgery[] {
  const other = verdictOnOther(scheme)
  const signsTime = signsBody(scheme) && (scheme.scheme !== 'hmac-signature' || 'timestampHeader' in scheme)
  const hourAgo = () => Date.now() - 3_600_000
  return [
    { what: 'without a signature', sign: unsigned, other },
    { what: 'with a wrong secret', sign: signerFor(withWrongSecret(scheme), 'forged'), other },
    ...(signsBody(scheme)
      ? [{ what: 'whose body was changed after it was signed', sign: altered(signerFor(scheme, 'altered')), other }]
      : []),
    // The signature is valid, so any 4xx is right.
    ...(signsTime
      ? [{ what: 'that was signed an hour ago', sign: signerFor(scheme, 'old', hourAgo), other: 'ok' as const }]
      : []),
  ]
}

/** A route that depends on the query can answer 404 unchecked. Under a secret path, no other path need exist. */
function verdictOnOther(scheme: SigningOptions): Finding['verdict'] {
  if (scheme.scheme !== 'url-token') return 'warning'
  return hasTokenInPath(scheme) ? 'ok' : 'failed'
}

function withWrongSecret(scheme: SigningOptions): SigningOptions {
  const wrong = randomBytes(24).toString('base64')
  return scheme.scheme === 'basic-auth' ? { ...scheme, password: wrong } : { ...scheme, secret: wrong }
}

/** Appends a space after signing: same JSON, different bytes. */
const altered =
  (sign: Signer): Signer =>
  async (draft) => ({
    ...(await sign(draft)),
    body: Buffer.concat([draft.body, Buffer.from(' ')]),
  })
