/**
 * Masks what may be secret in a URL: credentials, token-like path segments, query values, query entries without a name.
 * @param url absolute, or path and query
 * @param tokenInPath masks the last path segment whatever it looks like
 */
export function maskedUrl(url: string, tokenInPath = false): string {
  const { origin, segments, query } = splitUrl(url)
  const path = segments.map((segment, index, { length }) => {
    const isToken = looksSecret(segment) || (tokenInPath && index === length - 1 && segment !== '')
    return isToken ? '…' : segment
  })
  const address = `${origin.replace(/\/\/.*@/, '//…@')}${path.join('/')}`
  if (query === undefined) return address
  return `${address}?${queryEntries(query)
    .map(({ name }) => (name === undefined ? '…' : `${name}=…`))
    .join('&')}`
}

/** The parts of a URL that {@link maskedUrl} masks, in each form that a receiver could echo. */
export function secretsIn(url: string): string[] {
  const { origin, segments, query = '' } = splitUrl(url)
  const [, credentials = ''] = /\/\/(.*)@/.exec(origin) ?? []
  const [user = '', password = ''] = credentials.split(/:(.*)/s).map(decoded)
  const secrets = [
    ...[user, password, Buffer.from(`${user}:${password}`).toString('base64')],
    ...segments.filter(looksSecret).flatMap((segment) => [segment, decoded(segment)]),
    ...queryEntries(query).flatMap(({ value, raw }) => [value, raw]),
  ]
  // Shorter ones are no secrets, and masking them would garble the output.
  return secrets.filter((each) => each.length >= 4)
}

export const maskingHelp =
  'Printed URLs leave out the user, the password, the values of the query, and long path segments that are not words.\n' +
  'A short secret in the path looks like a name and is printed.'

/** A query entry. Without a name, all of it may be secret. */
interface QueryEntry {
  readonly name?: string
  readonly value: string
  /** As written in the URL. */
  readonly raw: string
}

/** Parses a query. A trailing `=` is base64 padding, not a separator. */
export const queryEntries = (query: string): QueryEntry[] =>
  query.split('&').flatMap((entry) => {
    const [, name = '', raw = ''] = /^([^=]+)=(.*[^=].*)$/s.exec(entry) ?? []
    if (name !== '' && !looksSecret(name)) return [{ name: plusDecoded(name), value: plusDecoded(raw), raw }]
    return entry === '' ? [] : [{ value: plusDecoded(entry), raw: entry }]
  })

const words = /^[a-z]{1,15}([-_][a-z]{1,15})*$/

/** Long, and not just lower-case words. */
export const looksSecret = (segment: string): boolean => segment.length >= 16 && !words.test(segment)

/** Secrets of this length are masked inside words too. A shorter one can be part of a word by chance. */
const longSecret = 8

/** Masks secrets, plain or URL-encoded. */
export function withoutSecret(text: string, ...secrets: readonly (string | undefined)[]): string {
  const forms = secrets.flatMap((secret) => (secret === undefined ? [] : [secret, encodeURIComponent(secret)]))
  // Longest first: one secret can contain another.
  return forms.sort((a, b) => b.length - a.length).reduce((rest, form) => rest.replaceAll(makePattern(form), '…'), text)
}

function makePattern(secret: string): string | RegExp {
  if (secret.length >= longSecret) return secret
  return new RegExp(`(?<![\\p{L}\\p{N}])${secret.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')}(?![\\p{L}\\p{N}])`, 'gu')
}

function splitUrl(url: string) {
  const [, origin = '', path = '', query] = /^(\w+:\/\/[^/?#]*)?([^?#]*)(?:\?([^#]*))?/.exec(url) ?? []
  return { origin, segments: path.split('/'), query }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const plusDecoded = (text: string): string => decoded(text.replaceAll('+', ' '))
