const unitMs = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 }

/** Reads a duration such as `90 s` or `1.5 h`, and returns it in ms. Returns `NaN` for any other text. */
export function parseDuration(text: string): number {
  const [, amount, unit] = /^(\d+(?:\.\d+)?) ?(ms|s|min|h|d)$/.exec(text) ?? []
  return Number(amount) * unitMs[unit as keyof typeof unitMs]
}
