import { WebhookError } from '../../../index.ts'
import { causeText } from '../../../internal/storage/outage.ts'
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
  const reason = causeText(error.cause)
  const rest = reason === '' || error.message.endsWith(reason) ? '' : `: ${reason}`
  return new Error(`${shownUrl(address)}: ${withoutSecret(`${error.message}${rest}`, ...passwordsIn(address))}`, {
    cause: error,
  })
}

const isMissing = (error: unknown, name: string): boolean => {
  const { code, message } = error as { code?: unknown; message?: unknown }
  return code === 'ERR_MODULE_NOT_FOUND' && `${message}`.includes(`'${name}'`)
}

function passwordsIn(url: string): string[] {
  const [, user = '', password] = /\/\/([^:@]*):(.*)@/s.exec(url) ?? []
  if (!password) return secretsIn(url).filter((secret) => secret !== user)
  // An unencoded `?` or `#` ends the host for a driver, whose error then quotes part of the password.
  return [password, ...password.split(/[/?#@:[\]]/), ...secretsIn(url)].filter((part) => part !== '' && part !== user)
}
