import { ageText } from '../../../internal/duration.ts'

/** An age, with the exact time as tooltip. */
export function Ago({ at, now }: { at: Date; now: Date }) {
  return (
    <time datetime={at.toISOString()} title={exactly(at)}>
      {distance(at, now)}
    </time>
  )
}

export function Moment({ at, now }: { at: Date; now: Date }) {
  return (
    <span>
      <time datetime={at.toISOString()}>{exactly(at)}</time> <span class="quiet">({distance(at, now)})</span>
    </span>
  )
}

function distance(at: Date, now: Date): string {
  const ms = now.getTime() - at.getTime()
  return ms >= 0 ? `${ageText(ms)} ago` : `in ${ageText(-ms)}`
}

// UTC: server and reader may be in different time zones.
const exactly = (at: Date): string => at.toISOString().replace('T', ' ').replace('Z', ' UTC')
