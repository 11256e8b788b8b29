import type { SigningOptions } from '../../../service/emulator/sending/signing.ts'
import { queryEntries } from '../../shared/mask.ts'
import { plain } from '../../shared/text.ts'

export interface UrlCredential {
  /** Name in findings, such as `'token'` or `password`. Not secret. */
  readonly what: string
  /** The URL with a wrong value of the same form. */
  readonly wrong: string
  readonly without: string
}

const maxCredentials = 3

const secretName = /token|secret|key|auth|sig|pass/i

/** Possible credentials in a URL: the password, and each query entry. */
export function credentialsIn(url: string): UrlCredential[] {
  const { username, password } = new URL(url)
  const withUser = (user: string, secret: string) =>
    Object.assign(new URL(url), { username: user, password: secret }).href
  const without = withUser('', '')
  const basic = []
  if (password !== '') basic.push({ what: 'password', wrong: withUser(username, alterCredential(password)), without })
  else if (username !== '') basic.push({ what: 'user', wrong: withUser(alterCredential(username), ''), without })
  return [...basic, ...credentialsInQuery(url)].slice(0, maxCredentials)
}

/** Query entries, the likeliest secrets first: by name, then by length. */
function credentialsInQuery(url: string): UrlCredential[] {
  const all = splitQuery(url)
  const replaced = (index: number, ...by: string[]) => withEntries(url, all.toSpliced(index, 1, ...by))
  const credentials = all.map((entry, index) => {
    const { name, raw } = queryEntries(entry)[0] ?? { raw: entry }
    return {
      what: name === undefined ? 'query' : `'${plain(name)}'`,
      likelihood: secretName.test(name ?? '') ? Number.POSITIVE_INFINITY : raw.length,
      wrong: replaced(index, `${entry.slice(0, entry.length - raw.length)}${alterCredential(raw)}`),
      without: replaced(index),
    }
  })
  return credentials.toSorted((a, b) => b.likelihood - a.likelihood || 0)
}

/** Wraps around at the last digit and letter, and at `f`, so hex stays hex. */
const afterLast: Readonly<Record<string, string>> = { 9: '0', f: 'a', F: 'A', z: 'a', Z: 'A' }

/** Changes the first letter or digit within its kind: a receiver may check the form first. Keeps percent-encodings. */
function alterCredential(text: string): string {
  const wrong = text.replace(
    /(?<!%|%[\da-f])[\da-z]/i,
    (character) => afterLast[character] ?? String.fromCharCode(character.charCodeAt(0) + 1),
  )
  return wrong === text ? `${text}x` : wrong
}

/** Strips the credentials that the scheme's signer adds, so they can be replaced or left out. */
export function removeCredentials(scheme: SigningOptions | undefined, url: string): string {
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
    splitQuery(url).filter((entry) => !new URLSearchParams(entry).has(parameter)),
  )
}

const splitQuery = (url: string): string[] =>
  new URL(url).search
    .slice(1)
    .split('&')
    .filter((entry) => entry !== '')

const withEntries = (url: string, entries: readonly string[]): string =>
  Object.assign(new URL(url), { search: entries.join('&') }).href
