import type { RetryResult } from '../engine/attempts.ts'
import { isRelease, releaseForMs, willNotRunAgain } from '../engine/owed-handlers.ts'
import { withFailure } from '../engine/stored.ts'
import type { AttemptResult, InboxHost } from '../inbox.ts'
import type { SqlAttempt } from './attempt.ts'
import { awaitedNames, ownNames } from './awaits.ts'
import type { SettledEvent } from './database.ts'

/** Delay before an event comes back that only a living process can handle, and that is too old to wait (ms). */
const minAwaitMs = 1_000

/** What an attempt leaves to record. */
export interface SettledEnd {
  /** The end of the attempt. Absent: the event keeps its place in the lane. */
  readonly event?: SettledEvent
  /** Handlers that completed in an attempt without an end. */
  readonly progress?: SettledEvent
  /** A limit holds the event: the lane rests for this long (ms), so that nothing overtakes it. */
  readonly restMs?: number
}

export interface EndingOptions {
  readonly host: Pick<InboxHost, 'handlersOf' | 'handlers'>
  readonly ttlMs: number
}

/** The result of an attempt that was not made, and counts for nothing. */
export const notMade: AttemptResult = { status: 'retry', delayMs: 0, completed: [], failures: [] }

/** Decides how an attempt's result is recorded. */
export function decideEnd(attempt: SqlAttempt, result: AttemptResult, options: EndingOptions): SettledEnd {
  if (result.status === 'done') {
    const handlers = options.host.handlersOf(attempt.accepted.event)
    return { event: settled(attempt, 'end', { completed: [...new Set([...attempt.completed, ...handlers])] }) }
  }
  const { completed, failures } = result
  const failed =
    failures.length === 0 ? undefined : JSON.stringify(withFailure(attempt.failedAttempts, attempt.number, failures))
  if (result.status === 'dead') return { event: settled(attempt, 'dead', { completed, failed }) }
  if (isRelease(result)) return released(attempt, result, options)
  if (attempt.aborted || result === notMade) return { progress: progress(attempt, completed) }
  const { delayMs, counts } = result
  return { event: settled(attempt, 'retry', { completed, failed, delayMs, counts: counts !== false }) }
}

/** Handlers were skipped, and none failed: at their limit, paused, or in other processes only. */
function released(attempt: SqlAttempt, { delayMs, completed }: RetryResult, options: EndingOptions): SettledEnd {
  const { accepted, stored, isElsewhere } = attempt
  // An untried event that a limit holds stays untried.
  if (delayMs > 0 && !stored.isRetry) return { progress: progress(attempt, completed), restMs: delayMs }
  const awaits = delayMs > 0 ? [] : awaited(attempt, completed, options)
  const deadlineMs = Math.max(minAwaitMs, accepted.receivedAt.getTime() + options.ttlMs - Date.now())
  const forMs = delayMs || (awaits.length > 0 ? deadlineMs : releaseForMs(accepted, isElsewhere))
  return { event: settled(attempt, 'release', { completed, delayMs: forMs, counts: false, awaits }) }
}

/** Names of owed handlers only other processes have. Empty while this process has handlers left to run. */
function awaited(attempt: SqlAttempt, completed: readonly string[], { host }: EndingOptions): readonly string[] {
  const { accepted, owed = [], missing, failures } = attempt
  const { event } = accepted
  const isLeft = (name: string) => !willNotRunAgain({ completed, failures }, name)
  if (host.handlersOf(event).some(isLeft)) return []
  const left = owed.filter((name) => isLeft(name) && !missing.includes(name))
  return awaitedNames(left, event.type, ownNames(host.handlers()))
}

const progress = (attempt: SqlAttempt, completed: readonly string[]): SettledEvent =>
  settled(attempt, 'progress', { completed, counts: false })

function settled(
  { media, id, late, stored }: SqlAttempt,
  kind: SettledEvent['kind'],
  given: Partial<SettledEvent> & Pick<SettledEvent, 'completed'>,
): SettledEvent {
  const { counts = true } = given
  const attempts = stored.attempts + Number(counts)
  return { media, id, kind, attempts, counts, delayMs: 0, failed: undefined, late, awaits: [], ...given }
}
