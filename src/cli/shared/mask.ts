/**
 * Masks the parts of a URL that may be secret: credentials, the values of the query, and tokens in the path.
 * @param url a whole URL, or only its path and query
 * @param tokenInPath `true` masks the last segment of the path, whatever it looks like
 */
export function maskedUrl(url: string, tokenInPath = false): string {
  const [, origin = '', path = '', query] = /^(\w+:\/\/[^/?#]*)?([^?#]*)(?:\?([^#]*))?/.exec(url) ?? []
  const segments = path.split('/').map((segment, index, { length }) => {
    const isToken = looksSecret(segment) || (tokenInPath && index === length - 1 && segment !== '')
    return isToken ? '…' : segment
  })
  const address = `${origin.replace(/\/\/.*@/, '//…@')}${segments.join('/')}`
  if (query === undefined) return address
  return `${address}?${[...new URLSearchParams(query).keys()].map((name) => `${name}=…`).join('&')}`
}

/** The part of a command's help that describes how URLs are printed. */
export const maskingHelp =
  'Printed URLs leave out the user, the password, the values of the query, and long path segments that are not words.\n' +
  'A short secret in the path looks like a name and is printed.'

const words = /^[a-z]{1,15}([-_][a-z]{1,15})*$/

/** `true` if a segment of a path may be a secret: it is long, and not just words in lower case. */
export const looksSecret = (segment: string): boolean => segment.length >= 16 && !words.test(segment)

/** Masks a secret in a text, plain or URL-encoded. */
export function withoutSecret(text: string, secret: string | undefined): string {
  if (secret === undefined) return text
  return text.replaceAll(secret, '…').replaceAll(encodeURIComponent(secret), '…')
}
