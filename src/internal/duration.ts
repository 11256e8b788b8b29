const unitMs = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 }

/** Reads a duration such as `90 s` or `1.5 h`, and returns it in ms. Returns `NaN` for any other text. */
export function parseDuration(text: string): number {
  const [, amount, unit] = /^(\d+(?:\.\d+)?) ?(ms|s|min|h|d)$/.exec(text) ?? []
  return Number(amount) * unitMs[unit as keyof typeof unitMs]
}

/** Writes a duration in the largest unit that it has at least two of: `25 ms`, `90 s`, `40 min`, `2.5 h`. */
export function durationText(ms: number): string {
  const [unit, size] = Object.entries(unitMs).findLast(([, each]) => ms >= 2 * each) ?? ['ms', 1]
  return `${Number((ms / size).toFixed(1))} ${unit}`
}
