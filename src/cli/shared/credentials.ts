import type { SigningOptions } from '../../service/emulator/sending/signing.ts'
import type { KeptDelivery } from './kept-delivery.ts'
import { looksSecret, queryEntries } from './mask.ts'

// Ordinary headers, never credentials.
const harmless =
  /^(host|user-agent|content-(type|length|encoding)|accept(-.*)?|connection|transfer-encoding|date|(webhook|svix)-(id|timestamp)|(x-)?forwarded(-.*)?|x-real-ip|traceparent|x-cloud-trace-context|via)$/i
const suspicious = /\bsig\b|auth|token|sign|secret|key|hmac|digest|cookie|password|credential/i
// Splits a prefix such as `Bearer ` or `sha256=` from the credential.
const prefixed = /^((?:(?:bearer|basic|token|hmac|signature|sha\d+|hmac-sha\d+|v\d+|sig\d+|time|t)[=:, ] ?)?)(.*)$/is

/** Separates the parts of a header such as `t=…,v1=…`. */
const between = /([,;] ?)/

const uuid = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i

/** Long, without spaces, with digits and letters. */
const looksRandom = (text: string): boolean =>
  /^[\w+/=.~-]{16,}$/.test(text) && /\d/.test(text) && /[a-z]/i.test(text) && !uuid.test(text)

/** `true` if a header may contain a credential of the sender. */
export function isCredential(name: string, value: string): boolean {
  if (harmless.test(name)) return false
  return suspicious.test(name) || value.split(between).some((part) => looksRandom(prefixed.exec(part)?.[2] ?? ''))
}

/** Shows the form of a credential, not its value. */
export const masked = (value: string): string =>
  value
    .split(between)
    .map((part, index) => (index % 2 === 0 && part !== '' ? maskedPart(part) : part))
    .join('')

function maskedPart(value: string): string {
  const [, prefix = '', rest = ''] = prefixed.exec(value) ?? []
  const form = /^[\da-f]+$/i.test(rest) ? 'hex digits' : 'characters'
  return `${prefix}… (${rest.length} ${form}, masked)`
}

export const credentialHeaders = ({ fields }: Pick<KeptDelivery, 'fields'>): string[] =>
  fields.filter(([name, value]) => isCredential(name, value)).map(([name]) => name)

/** Texts in headers that may be credentials, in each form that a receiver could echo. */
export const credentialsIn = ({ fields }: Pick<KeptDelivery, 'fields'>): string[] =>
  fields
    .filter(([name, value]) => isCredential(name, value))
    .flatMap(([, value]) => [value, ...value.split(between).flatMap((part) => prefixed.exec(part)?.[2] ?? [])])
    .filter((text) => text.length >= 4)

type UrlToken = Extract<SigningOptions, { scheme: 'url-token' }>

/** Places in a URL that may contain a token, each with its scheme. */
export function urlTokens({ url }: Pick<KeptDelivery, 'url'>) {
  const [, path = '', query = ''] = /^([^?#]*)\??([^#]*)/.exec(url) ?? []
  const places = new Map<string, UrlToken>()
  for (const { name, value } of queryEntries(query)) {
    if (name !== undefined && (suspicious.test(name) || looksSecret(value))) {
      places.set(`the query parameter ${name}`, inQuery(name))
    } else if (name === undefined && looksSecret(value)) {
      places.set('the query, which lacks the name of a parameter (write it as ?token=…)', inQuery('token'))
    }
  }
  const found = [...places].map(([where, scheme]) => ({ where, scheme }))
  if (!looksSecret(path.slice(path.lastIndexOf('/') + 1))) return found
  const inPath: UrlToken = { scheme: 'url-token', secret: '', in: 'path' }
  return [...found, { where: 'the end of the path', scheme: inPath }]
}

const inQuery = (parameter: string): UrlToken => ({
  scheme: 'url-token',
  secret: '',
  ...(parameter !== 'token' && { parameter }),
})
