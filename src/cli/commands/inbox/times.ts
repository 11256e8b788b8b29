const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const

/** Writes a duration for people: `12 s`, `3 min`, `5 h`, `2 d`. */
export function duration(ms: number): string {
  const [unit, unitMs] = units.find(([, each]) => ms >= 2 * each) ?? ['s', 1_000]
  return `${Math.max(0, Math.floor(ms / unitMs))} ${unit}`
}

/** Writes a time, and how far it is from now. */
export function time(at: Date): string {
  const sinceMs = Date.now() - at.getTime()
  const distance = sinceMs < 0 ? `in ${duration(-sinceMs)}` : `${duration(sinceMs)} ago`
  return `${at.toISOString()} (${distance})`
}
