const unitMs = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 }

/** Reads a duration such as `90 s` or `1.5 h`, and returns it in ms. Returns `NaN` for any other text. */
export function parseDuration(text: string): number {
  const [, amount, unit] = /^(\d+(?:\.\d+)?) ?(ms|s|min|h|d)$/.exec(text) ?? []
  return Number(amount) * unitMs[unit as keyof typeof unitMs]
}

/** Finds the largest unit that a duration has at least two of. */
const unitOf = (ms: number) => Object.entries(unitMs).findLast(([, each]) => ms >= 2 * each) ?? (['ms', 1] as const)

/** Writes a duration in the largest unit that it has at least two of: `25 ms`, `90 s`, `40 min`, `2.5 h`. */
export function durationText(ms: number): string {
  const [unit, size] = unitOf(ms)
  return `${Number((ms / size).toFixed(1))} ${unit}`
}

/** Writes an age in whole units, from seconds on: `0 s`, `90 s`, `40 min`, `2 h`. */
export function ageText(ms: number): string {
  const [unit, size] = unitOf(Math.max(ms, 2 * unitMs.s))
  return `${Math.max(0, Math.floor(ms / size))} ${unit}`
}
