import { WebhookError } from '../../errors.ts'
import type { Failure } from '../sql/database.ts'

/**
 * Codes of any statement that don't blame the handler: conflicts of transactions, a full or broken disk. Others of
 * their classes may: a missing file (58P01) or temp_file_limit (53400) would block it forever.
 */
const anyStatementCodes = /^(40001|40P01|53100|58030)$/

/** Codes of our own statements: Postgres lacks a resource, stops, starts or fails over. */
const ownStatementCodes = /^(08|40|53|57P0[1-3]$|58|25006$)/

/** For a transaction that began read-only: after a failover, the old primary is a standby. */
export const readOnly = (): WebhookError =>
  new WebhookError('unavailable', 'Postgres accepts no writes on this connection: it is a standby, or set to read-only')

/** Returns the SQLSTATE of an error that Postgres sent. An error of Node can have a code of five letters too (`EPIPE`). */
export function sqlState(error: unknown): string | undefined {
  const { code, severity } = Object(error)
  return typeof code === 'string' && code.length === 5 && typeof severity === 'string' ? code : undefined
}

/** Maximum depth of causes. An error can be its own cause. */
const maxCauseDepth = 5

/** Returns the SQLSTATE of an error, or of one that it wraps. */
function findCode(error: unknown, depth = 0): string | undefined {
  const code = sqlState(error)
  if (code !== undefined) return code
  try {
    const { cause } = Object(error)
    return cause === undefined || depth === maxCauseDepth ? undefined : findCode(cause, depth + 1)
  } catch {
    return undefined
  }
}

/** True if an error says that a table or its schema does not exist. */
export const saysTableLost = (error: unknown): boolean => /^(42P01|3F000)$/.test(`${sqlState(error)}`)

/** True if a handler's error does not blame the handler. */
export const isStorageFailure = (error: unknown): boolean => anyStatementCodes.test(findCode(error) ?? '')

/** True if a statement was refused because an earlier one of its transaction failed. */
export const isRefused = (error: unknown): boolean => findCode(error) === '25P02'

/** True if our statement failed because of the storage, or of the connection: then Postgres sent no error. */
export const isOurFailure = (error: unknown): boolean => ownStatementCodes.test(findCode(error) ?? '08')

/**
 * True if a commit failed because of the storage. It also runs the user's deferred triggers, whose errors have a
 * context. The transaction could write when it began, so it was the handler that made it read-only (25006).
 */
export const isCommitFailure = (error: unknown): boolean =>
  isStorageFailure(error) ||
  (findCode(error) !== undefined &&
    findCode(error) !== '25006' &&
    Object(error).where === undefined &&
    isOurFailure(error))

/** True if a step that failed has changed nothing: it was not sent, or Postgres refused it. */
export function isUndone(error: unknown): boolean {
  const state = sqlState(error)
  if (state !== undefined) return !/^(08|57P0[12])/.test(state)
  return error instanceof WebhookError || Object(error).code === 'ECONNREFUSED'
}

/**
 * Tells whether the same step may soon succeed: Postgres is unreachable, starting, failing over or too busy. For the codes
 * see "PostgreSQL Error Codes". An error without one comes from the network.
 */
export function classifyFailure(error: unknown): Failure {
  const { code, cause, message } = Object(error)
  if (saysTableLost(cause)) return undefined
  if (error instanceof WebhookError)
    return code === 'unavailable' ? (cause && classifyFailure(cause)) || 'transient' : undefined
  const state = sqlState(error)
  if (state === '57014' || /^Query read timeout/.test(`${message}`)) return 'timeout'
  if (state === undefined || /^(08|40|53|57|25006|55P03)/.test(state)) return 'transient'
  return undefined
}
