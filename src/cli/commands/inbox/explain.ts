import { WebhookError } from '../../../index.ts'
import { refusedHint } from '../../../internal/refused.ts'
import { secretsIn, withoutSecret } from '../../shared/mask.ts'
import { shownUrl } from './command-line.ts'
import type { InboxTarget } from './target.ts'

const packages = { file: [], postgres: ['pg'], redis: ['bullmq', 'ioredis'] } as const

/** Explains our own errors to the user, without the URL's password. Returns other errors unchanged. */
export function explained(error: unknown, { kind, address }: InboxTarget): unknown {
  const missing = packages[kind].find((name) => isMissing(error, name))
  if (missing !== undefined) {
    const install = `npm install ${packages[kind].join(' ')}`
    return new Error(`the package ${missing} is not installed: ${install}`, { cause: error })
  }
  if (!(error instanceof WebhookError)) return error
  // For a bad path the package reports `invalid_option`, but here the command line is fine.
  if (kind === 'file') return new Error(error.message, { cause: error })
  if (error.code === 'invalid_option') return error
  return new Error(`${shownUrl(address)}: ${error.message}${explainCause(error.cause, address)}`, { cause: error })
}

const isMissing = (error: unknown, name: string): boolean => {
  const { code, message } = error as { code?: unknown; message?: unknown }
  return code === 'ERR_MODULE_NOT_FOUND' && `${message}`.includes(`'${name}'`)
}

/** Fixes by error code, or by how the message begins. */
const fixes: readonly (readonly [RegExp, string])[] = [
  [/^ECONNREFUSED/, refusedHint],
  [/^(ENOTFOUND|EAI_AGAIN)/, 'is the host name right?'],
  [/^(ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|no answer)|timeout/, 'can this machine reach the server?'],
  [/^(28|WRONGPASS)/, 'are the user and the password right?'],
  [/^(SASL.*password must be|NOAUTH)/, 'the server requires a password: put it into the URL'],
  [/^3D000/, 'is the name of the database right?'],
  [/^(42501|NOPERM)/, 'grant the user that right'],
  [/^(25006|READONLY)/, 'this server is read-only: pass the address of the primary'],
  [/^(ERR_INVALID_URL|Invalid URL)/, 'encode special characters in the password, such as / as %2F'],
]

function explainCause(cause: unknown, url: string): string {
  const { code, message, errors } = (cause ?? {}) as { code?: unknown; message?: string; errors?: readonly Error[] }
  // A host with several addresses fails with an AggregateError without a message.
  const text = message || errors?.[0]?.message || (typeof code === 'string' ? code : '')
  if (text === '') return ''
  const [, fix] = fixes.find(([pattern]) => [code, text].some((each) => pattern.test(String(each)))) ?? []
  return `: ${withoutSecret(text, ...passwordsIn(url))}${fix === undefined ? '' : ` (${fix})`}`
}

function passwordsIn(url: string): string[] {
  const [, user = '', password] = /\/\/([^:@]*):(.*)@/s.exec(url) ?? []
  if (!password) return secretsIn(url).filter((secret) => secret !== user)
  // An unencoded `?` or `#` ends the host for a driver, whose error then quotes part of the password.
  return [password, ...password.split(/[/?#@:[\]]/), ...secretsIn(url)].filter((part) => part !== '' && part !== user)
}
