import { looksRandom } from '../mask.ts'
import type { ReceivedDelivery } from './find-verifiers.ts'

// What every client sends; none of it is a credential.
const harmless =
  /^(host|user-agent|content-(type|length|encoding)|accept(-.*)?|connection|transfer-encoding|date|webhook-(id|timestamp)|x-forwarded-.*|x-real-ip|traceparent|via)$/i
const telling = /auth|token|sign|secret|key|hmac|digest|cookie|password|credential/i
// What stands before a credential and is none of it.
const prefixed = /^((?:(?:bearer|basic|token|hmac|signature|sha\d+|hmac-sha\d+|v\d+|t)[=:, ] ?)?)(.*)$/is

/** Whether a header field may hold what proves the sender. */
export function isCredential(name: string, value: string): boolean {
  if (harmless.test(name)) return false
  const [, , rest = ''] = prefixed.exec(value) ?? []
  return telling.test(name) || looksRandom(rest)
}

/** A credential's form, without itself. */
export function masked(value: string): string {
  const [, prefix = '', rest = ''] = prefixed.exec(value) ?? []
  const form = /^[\da-f]+$/i.test(rest) ? 'hex digits' : 'characters'
  return `${prefix}… (${rest.length} ${form}, masked)`
}

/** Where a delivery carries what may prove the sender: the names of headers and query parameters. */
export function credentialsOf({ url, fields }: Pick<ReceivedDelivery, 'url' | 'fields'>): string[] {
  const parameters = [...new URLSearchParams(/\?([^#]*)/.exec(url)?.[1]).keys()]
  return [
    ...fields.filter(([name, value]) => isCredential(name, value)).map(([name]) => `the header ${name}`),
    ...parameters.map((name) => `the query parameter ${name}`),
  ]
}
