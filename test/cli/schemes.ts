import type { SigningOptions } from '../../src/service/emulator/sending/signing.ts'

export const secret = 'a shared secret'
const standardSecret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

/** Ways to sign, each with the flags that describe it. */
const signings: readonly (readonly [options: SigningOptions, flags: readonly string[]])[] = [
  [{ scheme: 'url-token', secret }, []],
  [{ scheme: 'url-token', secret, parameter: 'key' }, ['--parameter', 'key']],
  [{ scheme: 'url-token', secret, in: 'path' }, ['--in', 'path']],
  [{ scheme: 'header-token', secret, header: 'x-webhook-token' }, ['--header', 'x-webhook-token']],
  [
    { scheme: 'header-token', secret, header: 'authorization', prefix: 'Bearer ' },
    ['--header', 'authorization', '--prefix', 'Bearer '],
  ],
  [{ scheme: 'basic-auth', username: 'media', password: secret }, ['--username', 'media']],
  [{ scheme: 'hmac-signature', secret, header: 'x-signature' }, ['--header', 'x-signature']],
  [
    { scheme: 'hmac-signature', secret, header: 'x-sum', prefix: 'sha1=', algorithm: 'sha1' },
    ['--header', 'x-sum', '--prefix', 'sha1=', '--algorithm', 'sha1'],
  ],
  [
    { scheme: 'hmac-signature', secret, header: 'x-signature', algorithm: 'sha512', encoding: 'base64' },
    ['--header', 'x-signature', '--algorithm', 'sha512', '--encoding', 'base64'],
  ],
  [
    { scheme: 'hmac-signature', secret, header: 'x-signature', prefix: 'v1=', timestampHeader: 'x-time' },
    ['--header', 'x-signature', '--prefix', 'v1=', '--timestamp-header', 'x-time'],
  ],
  [
    {
      ...{ scheme: 'hmac-signature', secret, header: 'x-slack-signature', prefix: 'v0=' },
      ...{ timestampHeader: 'x-slack-request-timestamp', signed: 'v0:{timestamp}:{body}' },
    },
    [
      ...['--header', 'x-slack-signature', '--prefix', 'v0=', '--signed', 'v0:{timestamp}:{body}'],
      ...['--timestamp-header', 'x-slack-request-timestamp'],
    ],
  ],
  [
    { scheme: 'hmac-signature', secret, header: 'x-signature', signed: '{url}{body}' },
    ['--header', 'x-signature', '--signed', '{url}{body}'],
  ],
  [{ scheme: 'standard-webhooks', secret: standardSecret }, []],
  [{ scheme: 'standard-webhooks', secret: standardSecret, headers: 'svix' }, ['--headers', 'svix']],
  [{ scheme: 'timestamped-signature', secret, header: 'mux-signature' }, ['--header', 'mux-signature']],
  [
    { scheme: 'timestamped-signature', secret, header: 'webhook-signature', time: 'time', signature: 'sig1' },
    ['--header', 'webhook-signature', '--time', 'time', '--signature', 'sig1'],
  ],
]

/** The ways to sign, each with a name for the test. */
export const named = signings.map(([options, flags]) => [[options.scheme, ...flags].join(' '), options, flags] as const)

/** Returns the environment with the secret of a way to sign. */
export const secretOf = (options: SigningOptions) => ({
  MEDIA_WEBHOOKS_SECRET: options.scheme === 'standard-webhooks' ? standardSecret : secret,
})
