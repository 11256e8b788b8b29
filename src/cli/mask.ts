/** A URL, or the target of a delivery, without what may be a secret: credentials, the values of its query, a token. */
export function maskedUrl(url: string): string {
  const [address = '', query] =
    url
      .replace(/^(\w+:\/\/)[^/?#]*@/, '$1…@')
      .split('#', 1)[0]
      ?.split(/\?(.*)/s) ?? []
  const end = address.lastIndexOf('/') + 1
  const path = looksRandom(address.slice(end)) ? `${address.slice(0, end)}…` : address
  if (query === undefined) return path
  return `${path}?${[...new URLSearchParams(query).keys()].map((name) => `${name}=…`).join('&')}`
}

const uuid = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i

/** Long, in one piece, and with digits among its letters, as secrets are. */
export const looksRandom = (text: string): boolean =>
  /^[\w+/=.~-]{16,}$/.test(text) && /\d/.test(text) && /[a-z]/i.test(text) && !uuid.test(text)

/** A text without a secret, however it is written there. */
export function withoutSecret(text: string, secret: string | undefined): string {
  if (secret === undefined) return text
  return text.replaceAll(secret, '…').replaceAll(encodeURIComponent(secret), '…')
}
