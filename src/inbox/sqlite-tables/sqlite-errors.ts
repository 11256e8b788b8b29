// Workers also use this file, and they have no driver.

/** Returns `true` if an error means that another connection holds the lock. */
export const isBusy = (error: unknown): boolean => isKind(error, 'SQLITE_BUSY', 5)

/** Returns `true` if an error, or the one that it wraps, comes from the storage and not from the statement. */
export function isStorageFailure(error: unknown): boolean {
  const { cause, message } = Object(error)
  if (cause !== undefined && isStorageFailure(cause)) return true
  // Durable Objects have the code in the message.
  if (/SQLITE_(FULL|IOERR)/.test(message)) return true
  return isBusy(error) || isKind(error, 'SQLITE_FULL', 13) || isKind(error, 'SQLITE_IOERR', 10)
}

/** Returns `true` if an error means that a constraint of the schema was violated. */
export const isConstraint = (error: unknown): boolean => isKind(error, 'SQLITE_CONSTRAINT', 19)

function isKind(error: unknown, name: string, number: number): boolean {
  const { code, errcode }: { code?: unknown; errcode?: unknown } = Object(error)
  // The lower byte of a code is the kind of the error, and the others are the details.
  return String(code).startsWith(name) || (Number(errcode) & 0xff) === number
}
