import { willNotRunAgain } from '../engine/owed-handlers.ts'
import type { EventRecord, Pause, ReadableInbox } from '../reading.ts'

/**
 * Names the paused handlers, or the inbox, that hold up an event. `undefined` if its next attempt is not held up.
 * An inbox that stores no owed handlers can't tell which of several it is: `publish or index`.
 */
export function pausedFor(record: EventRecord, pauses: readonly Pause[]): string | undefined {
  const { state, owed, completed, failedAttempts } = record
  if (state !== 'retrying' || pauses.length === 0) return undefined
  if (pauses.some(({ handler }) => handler === undefined)) return 'the inbox'
  const paused = pauses.flatMap(({ handler }) => handler ?? [])
  const failures = failedAttempts.at(-1)?.failures ?? []
  // After a failed attempt, only failed handlers count: a retry for an unpaused one is due.
  const failed = failures.flatMap(({ handler, final }) => (final ? [] : handler))
  const unfinished = (owed ?? (failed.length > 0 ? failed : paused)).filter(
    (name) => !willNotRunAgain({ completed, failures }, name),
  )
  if (unfinished.length === 0 || !unfinished.every((name) => paused.includes(name))) return undefined
  return unfinished.join(owed === undefined && failed.length === 0 ? ' or ' : ', ')
}

/** Newest events, and newest dead letters, searched for handler names. */
const scanLimit = 25

/** Lists the handlers registered here, and those named by the newest events and dead letters. */
export async function knownHandlers({ pauses, events, deadLetters }: ReadableInbox): Promise<readonly string[]> {
  const newest = (await events?.list({ limit: scanLimit }))?.events ?? []
  const dead = await deadLetters.list({ limit: scanLimit })
  const failures = [...dead, ...newest.flatMap(({ failedAttempts }) => failedAttempts)].flatMap((each) => each.failures)
  const recorded = newest.flatMap(({ completed, owed = [] }) => [...completed, ...owed])
  const names = new Set([...(pauses?.handlers?.() ?? []), ...failures.map(({ handler }) => handler), ...recorded])
  names.delete('none')
  return [...names]
}
