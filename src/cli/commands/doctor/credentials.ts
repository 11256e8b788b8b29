import type { SigningOptions } from '../../../emulator/sending/signing.ts'
import { queryEntries } from '../../shared/mask.ts'
import { plain } from '../../shared/text.ts'

/** A part of the endpoint's URL that may be a credential. */
export interface UrlCredential {
  /** Its name in findings, such as `'token'` or `password`. It is not a secret. */
  readonly what: string
  /** The URL with a wrong value of the same form in its place. */
  readonly wrong: string
  /** The URL without it. */
  readonly without: string
}

/** Maximum number of credentials that are tried. */
const maxCredentials = 3

/** Matches names that parameters with a secret have. */
const secretName = /token|secret|key|auth|sig|pass/i

/** Lists the parts of a URL that may be credentials: its password, and the entries of its query. */
export function credentialsIn(url: string): UrlCredential[] {
  const { username, password } = new URL(url)
  const withUser = (user: string, secret: string) =>
    Object.assign(new URL(url), { username: user, password: secret }).href
  const without = withUser('', '')
  const basic = []
  if (password !== '') basic.push({ what: 'password', wrong: withUser(username, wrongOf(password)), without })
  else if (username !== '') basic.push({ what: 'user', wrong: withUser(wrongOf(username), ''), without })
  return [...basic, ...credentialsInQuery(url)].slice(0, maxCredentials)
}

/** Lists the entries of the query. Those with the name or length of a secret come first. */
function credentialsInQuery(url: string): UrlCredential[] {
  const all = entriesOf(url)
  const replaced = (index: number, ...by: string[]) => withEntries(url, all.toSpliced(index, 1, ...by))
  const credentials = all.map((entry, index) => {
    const { name, raw } = queryEntries(entry)[0] ?? { raw: entry }
    return {
      what: name === undefined ? 'query' : `'${plain(name)}'`,
      likelihood: secretName.test(name ?? '') ? Number.POSITIVE_INFINITY : raw.length,
      wrong: replaced(index, `${entry.slice(0, entry.length - raw.length)}${wrongOf(raw)}`),
      without: replaced(index),
    }
  })
  return credentials.toSorted((a, b) => b.likelihood - a.likelihood || 0)
}

/** The successors of the last digit, the last letter, and the last hexadecimal digit, so that those stay hexadecimal. */
const afterLast: Readonly<Record<string, string>> = { 9: '0', f: 'a', F: 'A', z: 'a', Z: 'A' }

/**
 * Replaces the first letter or digit by another one of its kind, so that the form stays: a receiver may check that first.
 * Percent-encoded characters stay.
 */
function wrongOf(text: string): string {
  const wrong = text.replace(
    /(?<!%|%[\da-f])[\da-z]/i,
    (character) => afterLast[character] ?? String.fromCharCode(character.charCodeAt(0) + 1),
  )
  return wrong === text ? `${text}x` : wrong
}

/** Removes from a URL the credentials that the scheme's signer adds, so that they can be left out or replaced. */
export function withoutCredentialsOf(scheme: SigningOptions | undefined, url: string): string {
  if (scheme?.scheme === 'basic-auth') return Object.assign(new URL(url), { username: '', password: '' }).href
  if (scheme?.scheme !== 'url-token') return url
  if (scheme.in === 'path') {
    const [path = '', ...query] = url.split(/(?=\?)/)
    const end = path.lastIndexOf('/')
    return path.slice(end + 1) === encodeURIComponent(scheme.secret) ? [path.slice(0, end), ...query].join('') : url
  }
  const { parameter = 'token' } = scheme
  return withEntries(
    url,
    entriesOf(url).filter((entry) => !new URLSearchParams(entry).has(parameter)),
  )
}

const entriesOf = (url: string): string[] =>
  new URL(url).search
    .slice(1)
    .split('&')
    .filter((entry) => entry !== '')

const withEntries = (url: string, entries: readonly string[]): string =>
  Object.assign(new URL(url), { search: entries.join('&') }).href
