import { WebhookError } from '../../errors.ts'
import { refusedHint } from '../refused.ts'

/** Fixes by error code, or by how the message begins. */
const fixes: readonly (readonly [RegExp, string])[] = [
  [/^ECONNREFUSED/, refusedHint],
  [/^(ENOTFOUND|EAI_AGAIN)/, 'is the host name right?'],
  [/^ENOENT/, 'is the server running, and is the path of its socket right?'],
  [/^(ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|no answer)|timeout/, 'can this machine reach the server?'],
  [/^(28|WRONGPASS)/, 'are the user and the password right?'],
  [/^(SASL.*password must be|NOAUTH)/, 'the server requires a password: put it into the URL'],
  [/^3D000/, 'is the name of the database right?'],
  [/^53300/, 'give every process a smaller pool, or raise max_connections'],
  [/^(42501|NOPERM)/, 'grant the user that right'],
  [/^(25006|READONLY)/, 'this server is read-only: pass the address of the primary'],
  [/^(ERR_INVALID_URL|Invalid URL)/, 'encode special characters in the password, such as / as %2F'],
]

/** SQLSTATE classes whose messages can quote the values of a statement. */
const quotesData = /^2[1-3]/

/** Longest text that is quoted (characters). */
const maxLength = 300

/** Says in one line what a driver's error means, and the fix if it is known. `''` if the error says nothing. */
export function causeText(cause: unknown): string {
  try {
    return textOf(cause)
  } catch {
    // A thrown value can be a revoked proxy.
    return ''
  }
}

function textOf(cause: unknown): string {
  const { code, message, errors, severity } = Object(cause) as {
    readonly code?: unknown
    readonly message?: unknown
    readonly errors?: readonly { readonly message?: unknown }[]
    readonly severity?: unknown
  }
  if (typeof code === 'string' && severity !== undefined && quotesData.test(code)) return `error ${code}`
  // A host with several addresses fails with an AggregateError without a message.
  const texts = typeof message === 'string' && message !== '' ? [message] : (errors ?? []).map((each) => each.message)
  const text = [...new Set(texts)].join(', ') || (typeof code === 'string' ? code : '')
  if (text === '') return ''
  const [, fix] = fixes.find(([pattern]) => [code, text].some((each) => pattern.test(String(each)))) ?? []
  // Redis quotes the arguments of a command that it does not know.
  const shown = text
    .replace(/,? with args beginning with.*/s, '')
    .replace(/\s*\n\s*/g, ' ')
    .slice(0, maxLength)
  return fix === undefined ? shown : `${shown} (${fix})`
}

/**
 * Wraps what a driver threw. The message names the cause and the fix: it is for logs, never for a sender.
 * @param subject the storage, and where it is if known: `Postgres at db.example:5432`
 */
export function outage(subject: string, cause: unknown): WebhookError {
  const text = causeText(cause)
  return new WebhookError('unavailable', `${subject} ${text === '' ? 'gave no answer' : `cannot be used: ${text}`}`, {
    cause,
  })
}
