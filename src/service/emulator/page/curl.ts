import type { SentRequest } from '../sending/sending.ts'

/** Writes a request as a curl command for a POSIX shell: same URL, headers and body, plus curl's own Accept. */
export function toCurl({ url, headers, body }: SentRequest): string {
  const fields = Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`)
  // Without --globoff, curl expands brackets and braces in the URL. --data-raw, unlike --data, never reads a file.
  return ['curl --globoff', quoted(url), ...fields, `--data-raw ${quoted(body)}`].join(' \\\n  ')
}

/** Quotes for a shell. An apostrophe ends the quotes, is escaped, and reopens them. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
