import { addByName, durationBounds } from '../../../inbox/operations/activity.ts'
import type { ActivityMinute, Durations } from '../../../inbox/reading.ts'

/** The time span of the charts, in slots of equal length. */
export interface Period {
  readonly name: string
  readonly label: string
  readonly slotMs: number
  readonly slots: number
}

export const periods = [
  { name: 'hour', label: 'Last hour', slotMs: 60_000, slots: 60 },
  { name: 'day', label: 'Last day', slotMs: 1_800_000, slots: 48 },
] as const satisfies Period[]

export type Slot = ActivityMinute

/** Sums minutes into the slots of a period, oldest first, without gaps. */
export function toSlots(minutes: readonly ActivityMinute[], { slotMs, slots }: Period, now: Date): readonly Slot[] {
  const last = Math.floor(now.getTime() / slotMs)
  const sums = Array.from({ length: slots }, (_, index): Slot => {
    return sumSlots([], new Date((last - slots + 1 + index) * slotMs))
  })
  for (const [index, sum] of sums.entries()) {
    const from = sum.startedAt.getTime()
    const within = minutes.filter(({ startedAt }) => startedAt.getTime() >= from && startedAt.getTime() < from + slotMs)
    if (within.length > 0) sums[index] = sumSlots(within, sum.startedAt)
  }
  return sums
}

export function sumSlots(parts: readonly Slot[], startedAt: Date): Slot {
  const sum = (count: 'accepted' | 'duplicates' | 'ignored' | 'rejected' | 'handled' | 'failed') =>
    parts.reduce((total, part) => total + part[count], 0)
  const durations = (kind: 'acknowledgement' | 'handling') =>
    Array.from({ length: durationBounds.length + 1 }, (_, index) =>
      parts.reduce((total, part) => total + (part[kind][index] ?? 0), 0),
    )
  return {
    startedAt,
    accepted: sum('accepted'),
    duplicates: sum('duplicates'),
    ignored: sum('ignored'),
    rejected: sum('rejected'),
    handled: sum('handled'),
    failed: sum('failed'),
    rejectedBy: byName(parts, 'rejectedBy'),
    failedBy: byName(parts, 'failedBy'),
    acknowledgement: durations('acknowledgement'),
    handling: durations('handling'),
  }
}

function byName(parts: readonly Slot[], kind: 'rejectedBy' | 'failedBy'): Readonly<Record<string, number>> {
  const sum: Record<string, number> = Object.create(null)
  for (const part of parts) addByName(sum, part[kind])
  return sum
}

/**
 * Estimates a quantile (ms) by linear interpolation within a bucket. `undefined` without durations.
 * @param part 0.5 for the median
 */
export function estimateQuantile(durations: Durations, part: number): number | undefined {
  const total = durations.reduce((sum, count) => sum + count, 0)
  if (total === 0) return undefined
  const rank = part * total
  let below = 0
  for (const [index, count] of durations.entries()) {
    if (count > 0 && below + count >= rank) {
      const from = durationBounds[index - 1] ?? 0
      const to = durationBounds[index] ?? from
      return from + ((rank - below) / count) * (to - from)
    }
    below += count
  }
  return durationBounds.at(-1)
}
