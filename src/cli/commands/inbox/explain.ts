import { WebhookError } from '../../../index.ts'
import { refusedHint } from '../../../internal/refused.ts'
import { secretsIn, withoutSecret } from '../../shared/mask.ts'
import { shownUrl } from './command-line.ts'
import type { Target } from './target.ts'

/** The packages that the inboxes need, by the kind of their target. */
const packages = { file: [], postgres: ['pg'], redis: ['bullmq', 'ioredis'] } as const

/** Turns an error of the package into a sentence for the user, without the password of the URL. Other errors stay as they are. */
export function explained(error: unknown, { kind, address }: Target): unknown {
  const missing = packages[kind].find((name) => isMissing(error, name))
  if (missing !== undefined) {
    const install = `npm install ${packages[kind].join(' ')}`
    return new Error(`the package ${missing} is not installed: ${install}`, { cause: error })
  }
  if (!(error instanceof WebhookError)) return error
  // The package calls a wrong path an invalid option. Here the command line is valid, and the file is the problem.
  if (kind === 'file') return new Error(error.message, { cause: error })
  if (error.code === 'invalid_option') return error
  return new Error(`${shownUrl(address)}: ${error.message}${reasonOf(error.cause, address)}`, { cause: error })
}

const isMissing = (error: unknown, name: string): boolean => {
  const { code, message } = error as { code?: unknown; message?: unknown }
  return code === 'ERR_MODULE_NOT_FOUND' && `${message}`.includes(`'${name}'`)
}

/** The fixes of errors, by their code or the beginning of their message. */
const fixes: readonly (readonly [RegExp, string])[] = [
  [/^ECONNREFUSED/, refusedHint],
  [/^(ENOTFOUND|EAI_AGAIN)/, 'is the host name right?'],
  [/^(ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|no answer)|timeout/, 'can this machine reach the server?'],
  [/^(28|WRONGPASS)/, 'are the user and the password right?'],
  [/^(SASL.*password must be|NOAUTH)/, 'the server wants a password: write it into the URL'],
  [/^3D000/, 'is the name of the database right?'],
  [/^(42501|NOPERM)/, 'grant the user the right to it'],
  [/^(25006|READONLY)/, 'give the address of the server that takes writes'],
  [/^(ERR_INVALID_URL|Invalid URL)/, 'encode special characters in the password, such as / as %2F'],
]

function reasonOf(cause: unknown, url: string): string {
  const { code, message, errors } = (cause ?? {}) as { code?: unknown; message?: string; errors?: readonly Error[] }
  // A host with several addresses fails with an error that has no message.
  const text = message || errors?.[0]?.message || (typeof code === 'string' ? code : '')
  if (text === '') return ''
  const [, fix] = fixes.find(([pattern]) => [code, text].some((each) => pattern.test(String(each)))) ?? []
  return `: ${withoutSecret(text, ...passwordsIn(url))}${fix === undefined ? '' : ` (${fix})`}`
}

function passwordsIn(url: string): string[] {
  const [, user = '', password] = /\/\/([^:@]*):(.*)@/s.exec(url) ?? []
  if (!password) return secretsIn(url).filter((secret) => secret !== user)
  // An unencoded sign such as ? ends the address for a driver, whose error then quotes a part of the password.
  return [password, ...password.split(/[/?#@:[\]]/), ...secretsIn(url)].filter((part) => part !== '' && part !== user)
}
