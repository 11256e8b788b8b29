import { unescape as percentDecoded } from 'node:querystring'
import { WebhookError } from '../../../errors.ts'
import type { Signer } from '../../../testing/signers.ts'
import type { SentRequest } from './sending.ts'

/** @throws WebhookError `invalid_option` if `url` is not an http or https URL */
export async function requestTo(url: string, body: string, sign?: Signer): Promise<SentRequest> {
  const target = parseTarget(url)
  const unsigned = {
    headers: {
      'User-Agent': 'go-resty/2.16.5 (https://github.com/go-resty/resty)',
      'Content-Type': 'application/json',
      ...basicAuthorization(target),
    },
    url: withoutCredentials(target),
  }
  if (sign === undefined) return { ...unsigned, body }
  const signed = await sign({ ...unsigned, body: Buffer.from(body) })
  return { url: signed.url, headers: canonical(signed.headers), body }
}

/** @throws WebhookError `invalid_option`, without the URL, which may hold a secret */
export function parseTarget(url: string): URL {
  const target = URL.canParse(url) ? new URL(url) : undefined
  if (target && /^https?:$/.test(target.protocol)) return target
  throw new WebhookError(
    'invalid_option',
    'the URL of a webhook must be an http or https URL, such as https://example.com/hook',
  )
}

function withoutCredentials(target: URL): string {
  const url = new URL(target)
  url.username = url.password = url.hash = ''
  return url.href
}

function basicAuthorization({ username, password }: URL): { Authorization?: string } {
  if (username === '' && password === '') return {}
  const credentials = Buffer.from(`${percentDecoded(username)}:${percentDecoded(password)}`)
  return { Authorization: `Basic ${credentials.toString('base64')}` }
}

/** Spells header names like Go, so a signer's header replaces the same one in another case. */
function canonical(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name.toLowerCase().replace(/(?<=^|-)[a-z]/g, (letter) => letter.toUpperCase()),
      value,
    ]),
  )
}
