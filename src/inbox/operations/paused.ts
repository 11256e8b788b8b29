import type { EventRecord, Pause, ReadableInbox } from '../reading.ts'

/**
 * Names the paused handlers that an event waits for, or the inbox. `undefined` if it waits for its next attempt. An inbox
 * that stores no owed handlers does not know which of several it is: `publish or index`.
 */
export function pausedFor(record: EventRecord, pauses: readonly Pause[]): string | undefined {
  const { state, owed, completed, failedAttempts } = record
  if (state !== 'retrying' || pauses.length === 0) return undefined
  if (pauses.some(({ handler }) => handler === undefined)) return 'the inbox'
  const paused = pauses.flatMap(({ handler }) => handler ?? [])
  const failures = failedAttempts.at(-1)?.failures ?? []
  const hasEnded = (name: string) =>
    completed.includes(name) || failures.some(({ handler, final }) => final && handler === name)
  // Of a failed attempt, the handlers that failed: a retry for one that is not paused is due.
  const failed = failures.flatMap(({ handler, final }) => (final ? [] : handler))
  const unfinished = (owed ?? (failed.length > 0 ? failed : paused)).filter((name) => !hasEnded(name))
  if (unfinished.length === 0 || !unfinished.every((name) => paused.includes(name))) return undefined
  return unfinished.join(owed === undefined && failed.length === 0 ? ' or ' : ', ')
}

/** Events and dead letters that are searched for names of handlers: the newest. */
const scanLimit = 25

/** Lists the handlers of this process, and those that the newest events and dead letters name. */
export async function knownHandlers({ pauses, events, deadLetters }: ReadableInbox): Promise<readonly string[]> {
  const newest = (await events?.list({ limit: scanLimit }))?.events ?? []
  const dead = await deadLetters.list({ limit: scanLimit })
  const failures = [...dead, ...newest.flatMap(({ failedAttempts }) => failedAttempts)].flatMap((each) => each.failures)
  const recorded = newest.flatMap(({ completed, owed = [] }) => [...completed, ...owed])
  const names = new Set([...(pauses?.handlers?.() ?? []), ...failures.map(({ handler }) => handler), ...recorded])
  names.delete('none')
  return [...names]
}
