import type { SentRequest } from '../sending/sending.ts'

/** Writes a request as a curl command for a POSIX shell. It sends the same URL, headers and body, and an Accept of curl's own. */
export function curlOf({ url, headers, body }: SentRequest): string {
  const fields = Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`)
  // Without --globoff, curl expands brackets and braces in the URL. Unlike --data, --data-raw never reads a file.
  return ['curl --globoff', quoted(url), ...fields, `--data-raw ${quoted(body)}`].join(' \\\n  ')
}

/** Quotes a text so that a shell takes it literally: an apostrophe ends the quotes, is escaped, and begins them again. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
