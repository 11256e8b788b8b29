import { ageText } from '../../internal/duration.ts'

/** The time that has passed since a moment, with the exact time as its tooltip. */
export function Ago({ at, now }: { at: Date; now: Date }) {
  return (
    <time datetime={at.toISOString()} title={exactly(at)}>
      {distance(at, now)}
    </time>
  )
}

/** The exact time, and how long ago it was. */
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

// The reader may be in another time zone than the server.
const exactly = (at: Date): string => at.toISOString().replace('T', ' ').replace('Z', ' UTC')
