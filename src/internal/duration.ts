const unitMs = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 }

/** Parses `90 s` or `1.5 h` into ms. `NaN` for anything else. */
export function parseDuration(text: string): number {
  const [, amount, unit] = /^(\d+(?:\.\d+)?) ?(ms|s|min|h|d)$/.exec(text) ?? []
  return Number(amount) * unitMs[unit as keyof typeof unitMs]
}

/** The largest unit that fits at least twice. */
const chooseUnit = (ms: number) => Object.entries(unitMs).findLast(([, each]) => ms >= 2 * each) ?? (['ms', 1] as const)

/** Formats a duration: `25 ms`, `90 s`, `40 min`, `2.5 h`. */
export function durationText(ms: number): string {
  const [unit, size] = chooseUnit(ms)
  return `${Number((ms / size).toFixed(1))} ${unit}`
}

/** Formats an age in whole units, seconds at the least: `0 s`, `90 s`, `40 min`, `2 h`. */
export function ageText(ms: number): string {
  const [unit, size] = chooseUnit(Math.max(ms, 2 * unitMs.s))
  return `${Math.max(0, Math.floor(ms / size))} ${unit}`
}
