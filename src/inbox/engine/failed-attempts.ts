import type { FailedAttempt, HandlerFailure } from '../reading.ts'

/** The maximum number of failed attempts that an event keeps. */
const maxFailedAttempts = 20

/** Adds a failed attempt. */
export const withFailure = (
  earlier: readonly FailedAttempt[],
  number: number,
  failures: readonly HandlerFailure[],
): readonly FailedAttempt[] => [...earlier, { number, failures, failedAt: new Date() }].slice(-maxFailedAttempts)

/** Revives failed attempts from JSON. */
export const reviveFailedAttempts = (attempts: readonly FailedAttempt[] = []): readonly FailedAttempt[] =>
  attempts.map((attempt) => ({ ...attempt, failedAt: new Date(attempt.failedAt) }))
