import type { SigningOptions } from '../../../emulator/sending/signing.ts'
import { looksSecret } from '../../shared/mask.ts'
import type { ReceivedDelivery } from './find-verifiers.ts'

// What every client sends; none of it is a credential.
const harmless =
  /^(host|user-agent|content-(type|length|encoding)|accept(-.*)?|connection|transfer-encoding|date|webhook-(id|timestamp)|x-forwarded-.*|x-real-ip|traceparent|via)$/i
const telling = /auth|token|sign|secret|key|hmac|digest|cookie|password|credential/i
// What stands before a credential and is none of it.
const prefixed = /^((?:(?:bearer|basic|token|hmac|signature|sha\d+|hmac-sha\d+|v\d+|t)[=:, ] ?)?)(.*)$/is

const uuid = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i

/** Long, in one piece, and with digits among its letters, as secrets are. */
const looksRandom = (text: string): boolean =>
  /^[\w+/=.~-]{16,}$/.test(text) && /\d/.test(text) && /[a-z]/i.test(text) && !uuid.test(text)

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

/** The names of the headers that may hold what proves the sender. */
export const credentialHeaders = ({ fields }: Pick<ReceivedDelivery, 'fields'>): string[] =>
  fields.filter(([name, value]) => isCredential(name, value)).map(([name]) => name)

type UrlToken = Extract<SigningOptions, { scheme: 'url-token' }>

/** Where the URL of a delivery may hold a token, and which scheme that would be. */
export function urlTokens({ url }: Pick<ReceivedDelivery, 'url'>) {
  const [path = '', query] = url.split(/[?#]/, 2)
  const parameters = [...new Map(new URLSearchParams(query))].filter(
    ([name, value]) => telling.test(name) || looksSecret(value),
  )
  const found = parameters.map(([name]) => ({ where: `the query parameter ${name}`, scheme: inQuery(name) }))
  if (!looksSecret(path.slice(path.lastIndexOf('/') + 1))) return found
  const inPath: UrlToken = { scheme: 'url-token', secret: '', in: 'path' }
  return [...found, { where: 'the end of the path', scheme: inPath }]
}

const inQuery = (parameter: string): UrlToken => ({
  scheme: 'url-token',
  secret: '',
  ...(parameter !== 'token' && { parameter }),
})
