import type pg from 'pg'
import { WebhookError } from '../../errors.ts'

/**
 * The errors of any statement that say nothing about the handler: a conflict with another transaction, and a disk that is
 * full or broken. The other codes of their classes depend on the statement: a missing file (58P01) or the limit of temporary
 * files (53400) would stop a handler forever.
 */
const anyStatementCodes = /^(40001|40P01|53100|58030)$/

/** The errors of our own statements: Postgres lacks a resource, or it stops, starts or fails over. */
const ownStatementCodes = /^(08|40|53|57P0[1-3]$|58|25006$)/

/** Makes the error of a transaction that began read-only: after a failover, the former primary is a standby. */
export const readOnly = (): WebhookError =>
  new WebhookError('unavailable', 'Postgres accepts no writes on this connection: it is a standby, or set to read-only')

/** Maximum number of errors that wrap each other. A cause can be its own. */
const maxCauseDepth = 5

/** An error that Postgres sent. Any other error can have a `code` too. */
const isPostgresError = (error: unknown): error is pg.DatabaseError => {
  const { code, severity } = Object(error)
  return typeof code === 'string' && code.length === 5 && typeof severity === 'string'
}

/** Returns `true` if the error of a handler, or one that it wraps, is one of Postgres that says nothing about the handler. */
export function isStorageFailure(error: unknown, depth = 0): boolean {
  if (isPostgresError(error)) return anyStatementCodes.test(error.code as string)
  try {
    const { cause } = Object(error)
    return cause !== undefined && depth < maxCauseDepth && isStorageFailure(cause, depth + 1)
  } catch {
    return false
  }
}

/** Returns `true` if the error of our statement is one of the storage. An error that is not of Postgres is of the connection. */
export const isOurFailure = (error: unknown): boolean =>
  !isPostgresError(error) || ownStatementCodes.test(error.code as string)

/**
 * Returns `true` if a commit failed because of the storage. The commit also runs the user's deferred triggers, whose errors
 * have a context. A transaction began as one that can write, so the handler itself made it read-only.
 */
export const isCommitFailure = (error: unknown): boolean =>
  isStorageFailure(error) ||
  (isPostgresError(error) && error.code !== '25006' && error.where === undefined && isOurFailure(error))
