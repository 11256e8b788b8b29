import { randomBytes } from 'node:crypto'
import { type SigningOptions, signerFor } from '../../../emulator/sending/signing.ts'
import type { Signer } from '../../../testing/signers.ts'
import { looksSecret } from '../../shared/mask.ts'
import { type Endpoint, type Manner, unsigned } from './endpoint.ts'
import { type Finding, rejection } from './finding.ts'

/** Whether deliveries that the service did not sign are rejected. */
export async function* rejectsForgeries(endpoint: Endpoint): AsyncIterable<Finding> {
  for (const { what, how, fix } of forgeries(endpoint)) {
    const reply = await endpoint.deliver(endpoint.newEvent(), how)
    // That it is open was said on purpose.
    yield rejection(`rejects a delivery ${what}`, reply, fix, endpoint.open ? 'warning' : 'failed')
  }
}

interface Forgery {
  readonly what: string
  readonly how: Manner
  readonly fix: string
}

const tokenFix =
  'anyone who finds the URL can forge events. Verify: urlToken({ secret: process.env.MEDIA_WEBHOOKS_SECRET! }), and register the URL with ?token=<the secret>'

// It could as well be a name: an open endpoint must not look like one that is guarded by its path.
const pathFix = '. If the end of the path is the secret, leave it out and give --verify url-token --in path'

function forgeries({ url, scheme }: Endpoint): Forgery[] {
  if (scheme === undefined) {
    const bare = withoutCredentials(url)
    const what = bare === url ? 'that nobody signed' : 'without what its URL holds as credentials'
    const end = new URL(url).pathname.split('/').at(-1) ?? ''
    return [{ what, how: { url: bare }, fix: looksSecret(end) ? tokenFix + pathFix : tokenFix }]
  }
  const fix = 'verify each delivery before anything else, and reject with 401'
  const signed = (sign: Signer, what: string): Forgery => ({ what, how: { sign }, fix })
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

/** Signs a body with a space at its end, and sends the one without: the same JSON, but other bytes. */
const altered =
  (sign: Signer): Signer =>
  async (draft) => ({
    ...(await sign({ ...draft, body: Buffer.concat([draft.body, Buffer.from(' ')]) })),
    body: draft.body,
  })
