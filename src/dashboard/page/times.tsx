const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const

/** Formats an age in its largest unit, and in two if the first one is small: `1 min 20 s`, `3 h`. */
export function age(ms: number): string {
  const index = units.findIndex(([, size]) => ms >= size)
  const [unit, size] = units[index] ?? ['s', 1_000]
  const count = Math.max(0, Math.floor(ms / size))
  const [smaller, smallerSize] = units[index + 1] ?? []
  if (count >= 3 || smaller === undefined || smallerSize === undefined) return `${count} ${unit}`
  const rest = Math.floor((ms % size) / smallerSize)
  return rest === 0 ? `${count} ${unit}` : `${count} ${unit} ${rest} ${smaller}`
}

/** The time that has passed since a moment, with the exact time as its tooltip. */
export function Ago({ at, now }: { at: Date; now: Date }) {
  const ms = now.getTime() - at.getTime()
  return (
    <time datetime={at.toISOString()} title={exactly(at)}>
      {ms >= 0 ? `${age(ms)} ago` : `in ${age(-ms)}`}
    </time>
  )
}

/** The exact time, and how long ago it was. */
export function Moment({ at, now }: { at: Date; now: Date }) {
  const ms = now.getTime() - at.getTime()
  return (
    <span>
      <time datetime={at.toISOString()}>{exactly(at)}</time>{' '}
      <span class="quiet">({ms >= 0 ? `${age(ms)} ago` : `in ${age(-ms)}`})</span>
    </span>
  )
}

// The reader may be in another time zone than the server.
const exactly = (at: Date): string => at.toISOString().replace('T', ' ').replace('Z', ' UTC')
