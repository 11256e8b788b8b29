import { maxFailedAttempts } from '../../../inbox/engine/stored.ts'
import type { DeadLetter } from '../../../inbox/reading.ts'
import { makeTemplate } from './template.ts'

/** When a dead letter first failed for its current cause. Failed replays do not reset it. */
export interface FirstFailure {
  readonly at: Date
  /** The inbox no longer has the older attempts. */
  readonly mayBeOlder: boolean
}

/** Finds the first attempt in which the same handlers failed with the same errors as in the last attempt. */
export function findFirstFailure({ failures, failedAttempts = [], diedAt }: DeadLetter): FirstFailure {
  const same = failures.map((failure) => ({ ...failure, template: makeTemplate(failure.message) }))
  const index = failedAttempts.findIndex((attempt) =>
    same.every(({ handler, message, template }) =>
      attempt.failures.some(
        (other) => other.handler === handler && (other.message === message || makeTemplate(other.message) === template),
      ),
    ),
  )
  const mayBeOlder = index === 0 && failedAttempts.length === maxFailedAttempts
  return { at: failedAttempts[index]?.failedAt ?? diedAt, mayBeOlder }
}

export const findOldest = (failures: readonly FirstFailure[]): FirstFailure => ({
  at: new Date(failures.reduce((oldest, { at }) => Math.min(oldest, at.getTime()), Number.POSITIVE_INFINITY)),
  mayBeOlder: failures.some(({ mayBeOlder }) => mayBeOlder),
})

const hour = 3_600_000

/** Counts first failures in each of the last 24 hours, oldest hour first. */
export function byHour(failures: readonly FirstFailure[], now: Date): readonly number[] {
  const counts = new Array<number>(24).fill(0)
  for (const { at } of failures) {
    // Another machine's clock may be ahead.
    const index = 23 - Math.max(0, Math.floor((now.getTime() - at.getTime()) / hour))
    if (index >= 0) counts[index] = (counts[index] ?? 0) + 1
  }
  return counts
}
