/**
 * Masks the parts of a URL that may be secret: credentials, tokens in the path, the values of the query, and entries of
 * the query without a name.
 * @param url a whole URL, or only its path and query
 * @param tokenInPath `true` masks the last segment of the path in any case
 */
export function maskedUrl(url: string, tokenInPath = false): string {
  const { origin, segments, query } = partsOf(url)
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

/** Lists the parts of a URL that {@link maskedUrl} masks, as a receiver could repeat them. */
export function secretsIn(url: string): string[] {
  const { origin, segments, query = '' } = partsOf(url)
  const [, credentials = ''] = /\/\/(.*)@/.exec(origin) ?? []
  const [user = '', password = ''] = credentials.split(/:(.*)/s).map(decoded)
  const secrets = [
    ...[user, password, Buffer.from(`${user}:${password}`).toString('base64')],
    ...segments.filter(looksSecret).flatMap((segment) => [segment, decoded(segment)]),
    ...queryEntries(query).flatMap(({ value, raw }) => [value, raw]),
  ]
  // A shorter text is not a secret, and masking it would garble the output.
  return secrets.filter((each) => each.length >= 4)
}

/** The part of a command's help that describes how URLs are printed. */
export const maskingHelp =
  'Printed URLs leave out the user, the password, the values of the query, and long path segments that are not words.\n' +
  'A short secret in the path looks like a name and is printed.'

/** An entry of a query. Without a name, the whole entry may be a secret. */
interface QueryEntry {
  readonly name?: string
  readonly value: string
  /** The value as it is written in the URL. */
  readonly raw: string
}

/** Reads the entries of a query. An equals sign at the end is not a separator: secrets in base64 end with it. */
export const queryEntries = (query: string): QueryEntry[] =>
  query.split('&').flatMap((entry) => {
    const [, name = '', raw = ''] = /^([^=]+)=(.*[^=].*)$/s.exec(entry) ?? []
    if (name !== '' && !looksSecret(name)) return [{ name: plusDecoded(name), value: plusDecoded(raw), raw }]
    return entry === '' ? [] : [{ value: plusDecoded(entry), raw: entry }]
  })

const words = /^[a-z]{1,15}([-_][a-z]{1,15})*$/

/** `true` if a segment of a path may be a secret: it is long, and not just words in lower case. */
export const looksSecret = (segment: string): boolean => segment.length >= 16 && !words.test(segment)

/** The minimum length of a secret that is also masked inside words. A shorter one may be a part of a word by chance. */
const longSecret = 8

/** Masks secrets in a text, plain or URL-encoded. */
export function withoutSecret(text: string, ...secrets: readonly (string | undefined)[]): string {
  const forms = secrets.flatMap((secret) => (secret === undefined ? [] : [secret, encodeURIComponent(secret)]))
  // The longest secret comes first, because one can contain another.
  return forms
    .sort((a, b) => b.length - a.length)
    .reduce((rest, form) => rest.replaceAll(occurrencesOf(form), '…'), text)
}

function occurrencesOf(secret: string): string | RegExp {
  if (secret.length >= longSecret) return secret
  return new RegExp(`(?<![\\p{L}\\p{N}])${secret.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')}(?![\\p{L}\\p{N}])`, 'gu')
}

function partsOf(url: string) {
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
