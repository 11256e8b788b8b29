import { randomBytes } from 'node:crypto'
import { type SigningOptions, signerFor } from '../../../emulator/sending/signing.ts'
import type { Signer } from '../../../testing/signers.ts'
import { looksSecret } from '../../shared/mask.ts'
import { type Endpoint, unsigned, type Variation } from './endpoint.ts'
import { type Finding, mustReject } from './finding.ts'

/** Checks that the endpoint rejects deliveries that the service did not sign. */
export async function* rejectsForgeries(endpoint: Endpoint): AsyncIterable<Finding> {
  for (const { what, variation, fix } of forgeries(endpoint)) {
    const reply = await endpoint.deliver(endpoint.newEvent(), variation)
    // `open`: the user has said that the endpoint accepts unsigned deliveries on purpose.
    yield mustReject(`rejects a delivery ${what}`, reply, fix, endpoint.open ? 'warning' : 'failed')
  }
}

interface Forgery {
  /** Completes the sentence 'rejects a delivery …'. */
  readonly what: string
  readonly variation: Variation
  readonly fix: string
}

const tokenFix =
  'anyone who knows the URL can forge events. Set verify: urlToken({ secret: process.env.MEDIA_WEBHOOKS_SECRET! }), and register the URL with ?token=<the secret>'

// The end of the path may be a name and no secret: an open endpoint must not pass for one with a secret path.
const pathFix = '. If the end of the path is the secret, leave it out of the URL and give --verify url-token --in path'

function forgeries({ url, scheme }: Endpoint): Forgery[] {
  if (scheme === undefined) {
    const bare = withoutCredentials(url)
    const what = bare === url ? 'without credentials' : 'without the credentials in its URL'
    const end = new URL(url).pathname.split('/').at(-1) ?? ''
    return [{ what, variation: { url: bare }, fix: looksSecret(end) ? tokenFix + pathFix : tokenFix }]
  }
  const fix = 'verify each delivery before anything else, and answer 401 if it is not verified'
  const signed = (sign: Signer, what: string): Forgery => ({ what, variation: { sign }, fix })
  return [
    signed(unsigned, 'without a signature'),
    signed(signerFor(withWrongSecret(scheme), 'forged'), 'with a wrong secret'),
    ...(scheme.scheme === 'hmac-signature' || scheme.scheme === 'standard-webhooks'
      ? [signed(altered(signerFor(scheme, 'altered')), 'whose body was changed after it was signed')]
      : []),
    ...(scheme.scheme === 'standard-webhooks' || 'timestampHeader' in scheme
      ? [
          signed(
            signerFor(scheme, 'old', () => Date.now() - 3_600_000),
            'that was signed an hour ago',
          ),
        ]
      : []),
  ]
}

function withoutCredentials(url: string): string {
  const bare = new URL(url)
  bare.username = bare.password = bare.search = ''
  return bare.href
}

function withWrongSecret(scheme: SigningOptions): SigningOptions {
  const wrong = randomBytes(24).toString('base64')
  return scheme.scheme === 'basic-auth' ? { ...scheme, password: wrong } : { ...scheme, secret: wrong }
}

/** Signs the body with an added space, and sends the body without it: the same JSON, but other bytes. */
const altered =
  (sign: Signer): Signer =>
  async (draft) => ({
    ...(await sign({ ...draft, body: Buffer.concat([draft.body, Buffer.from(' ')]) })),
    body: draft.body,
  })
