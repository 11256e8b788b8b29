import type pg from 'pg'
import { WebhookError } from '../../errors.ts'

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

/** Maximum depth of causes. An error can be its own cause. */
const maxCauseDepth = 5

/** True for errors sent by Postgres. Others may have a `code` too. */
const isPostgresError = (error: unknown): error is pg.DatabaseError => {
  const { code, severity } = Object(error)
  return typeof code === 'string' && code.length === 5 && typeof severity === 'string'
}

/** True if a handler's error, or one it wraps, is an error of Postgres that doesn't blame the handler. */
export function isStorageFailure(error: unknown, depth = 0): boolean {
  if (isPostgresError(error)) return anyStatementCodes.test(error.code as string)
  try {
    const { cause } = Object(error)
    return cause !== undefined && depth < maxCauseDepth && isStorageFailure(cause, depth + 1)
  } catch {
    return false
  }
}

/** True if our statement failed because of the storage, or of the connection: then Postgres sent no error. */
export const isOurFailure = (error: unknown): boolean =>
  !isPostgresError(error) || ownStatementCodes.test(error.code as string)

/**
 * True if a commit failed because of the storage. It also runs the user's deferred triggers, whose errors have a
 * context. The transaction could write when it began, so it was the handler that made it read-only (25006).
 */
export const isCommitFailure = (error: unknown): boolean =>
  isStorageFailure(error) ||
  (isPostgresError(error) && error.code !== '25006' && error.where === undefined && isOurFailure(error))
