/** A moment of the day, by the clock of this machine, which is the reader's too. */
export function Moment({ at, precise = false }: { at: Date; precise?: boolean }) {
  const time = at.toTimeString().slice(0, 8)
  const milliseconds = String(at.getMilliseconds()).padStart(3, '0')
  return (
    <time datetime={at.toISOString()} title={at.toISOString()}>
      {precise ? `${time}.${milliseconds}` : time}
    </time>
  )
}

/** How long something took: `0.4 ms`, `12 ms`, `3.2 s`, `16 min`. */
export function duration(ms: number): string {
  if (ms < 1) return `${ms.toFixed(1)} ms`
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${Number((ms / 1_000).toFixed(1))} s`
  return `${Number((ms / 60_000).toFixed(1))} min`
}
