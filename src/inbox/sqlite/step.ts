import type { WebhookError } from '../../errors.ts'
import type { Step } from '../sql/database.ts'

/** A step of an inbox in SQLite: a function that runs in a transaction, and can run again if that fails. */
export interface SqliteStep<out Result> extends Step<Result> {
  /** Returns an error to reject with: throwing would roll back the other steps of the transaction. */
  run(): Result | WebhookError
  /** Called after the commit. */
  committed?(): void
  /** True if it may be lost with the power, as long as nothing that depends on it is kept. */
  readonly isLight?: boolean
}
