import type { FailedAttempt, HandlerFailure } from '../reading.ts'

/** The number of failed attempts of an event that are kept. */
const maxFailedAttempts = 20

/** Adds an attempt that has just failed. */
export const withFailure = (
  earlier: readonly FailedAttempt[],
  number: number,
  failures: readonly HandlerFailure[],
): readonly FailedAttempt[] => [...earlier, { number, failures, failedAt: new Date() }].slice(-maxFailedAttempts)

/** Revives failed attempts that went through JSON. */
export const reviveFailedAttempts = (attempts: readonly FailedAttempt[] = []): readonly FailedAttempt[] =>
  attempts.map((attempt) => ({ ...attempt, failedAt: new Date(attempt.failedAt) }))
