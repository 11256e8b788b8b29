import { expect, test } from 'vitest'
import { serveWebhook } from '../support/serve.ts'
import { accepted, examine, handWritten } from './examined-receiver.ts'
import { named, secretOf } from './schemes.ts'

const always = ['without a signature', 'with a wrong secret']
const changed = 'whose body was changed after it was signed'
const old = 'that was signed an hour ago'

/** The forgeries that a receiver accepts if it verifies nothing, by scheme. */
const forgeries: Record<string, readonly string[]> = {
  'url-token': always,
  'header-token': always,
  'basic-auth': always,
  'hmac-signature': [...always, changed],
  'hmac-signature with a timestamp': [...always, changed, old],
  'standard-webhooks': [...always, changed, old],
  'timestamped-signature': [...always, changed, old],
}

test.each(named)('doctor --verify %s finds every forgery that the scheme has to catch', async (_, options, flags) => {
  const { MEDIA_WEBHOOKS_SECRET: secret } = secretOf(options)
  const secretFlag = options.scheme === 'basic-auth' ? '--password' : '--secret'
  const url = await serveWebhook(handWritten(accepted, () => true))
  const { code, failed } = await examine(url, '--verify', options.scheme, secretFlag, secret, ...flags)
  expect(code).toBe(1)
  const scheme = 'timestampHeader' in options ? `${options.scheme} with a timestamp` : options.scheme
  expect(failed).toEqual(forgeries[scheme]?.map((what) => `rejects a delivery ${what}`))
})
