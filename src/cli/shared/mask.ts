/**
 * A URL, or the target of a delivery, without what may be a secret: credentials, the values of its query, tokens in its
 * path.
 * @param tokenInPath whether the last segment of the path is known to be one, whatever it looks like
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

/** For the help of a command that prints URLs. */
export const maskingHelp =
  'URLs are printed without user, password, the values of the query, and long segments of the path that are not words.\n' +
  'A short secret in the path looks like a name, and is printed.'

const words = /^[a-z]{1,15}([-_][a-z]{1,15})*$/

/** Whether a segment of a path may be a secret: it is long, and more than a few words in lower case. */
export const looksSecret = (segment: string): boolean => segment.length >= 16 && !words.test(segment)

/** A text without a secret, however it is written there. */
export function withoutSecret(text: string, secret: string | undefined): string {
  if (secret === undefined) return text
  return text.replaceAll(secret, '…').replaceAll(encodeURIComponent(secret), '…')
}
