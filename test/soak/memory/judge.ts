import type { Sample, Totals } from './sample.ts'
import { slopeOf } from './slope.ts'

const quantities = ['heap', 'rss', 'size'] as const
type Quantity = (typeof quantities)[number]

/**
 * Maximum rise of a quantity over the second half of a run, in bytes. `varies`: its fluctuation in a run that stays
 * flat. V8 keeps free memory, and Postgres vacuums from time to time.
 */
const varies: Readonly<Record<Quantity, number>> = { heap: 1_000_000, rss: 16_000_000, size: 4_000_000 }
/** Added for each event, in bytes: the smallest thing that can be kept of it is a reference. The key alone takes 200. */
const perEvent = 8

/** The line through the second half of the samples. */
export interface Trend {
  readonly quantity: Quantity
  /** The mean, in bytes. */
  readonly mean: number
  /** In bytes. */
  readonly perMinute: number
  readonly perEvent: number
  /** The rise over the second half, in bytes. */
  readonly rise: number
  /** The rise above which the run fails, in bytes. */
  readonly limit: number
}

/** Fits lines to the second half of the samples. */
export function trendsOf(samples: readonly Sample[]): readonly Trend[] {
  const half = samples.slice(Math.floor(samples.length / 2))
  const [first, last] = [half[0], half.at(-1)]
  if (first === undefined || last === undefined) return []
  const minutes = last.minute - first.minute
  const events = last.events - first.events
  return quantities.flatMap((quantity) => {
    const points = half.flatMap(({ minute, [quantity]: bytes }) =>
      bytes === undefined ? [] : [[minute, bytes] as const],
    )
    if (points.length === 0) return []
    const mean = points.reduce((sum, [, bytes]) => sum + bytes, 0) / points.length
    const perMinute = slopeOf(points)
    const rise = perMinute * minutes
    return [{ quantity, mean, perMinute, perEvent: rise / events, rise, limit: varies[quantity] + perEvent * events }]
  })
}

/** Returns the reasons why a run does not show that an inbox forgets what it has handled. */
export function faultsOf(samples: readonly Sample[], { accepted, duplicates, rejected, handled }: Totals): string[] {
  const faults: [holds: boolean, fault: string][] = [
    [samples.length < 10, `${samples.length} samples are too few`],
    [accepted < 1_000, 'too few events were accepted'],
    [duplicates < accepted / 10, 'too few duplicates were recognised'],
    [rejected > 0, `${rejected} deliveries were rejected`],
    [handled !== accepted, `${accepted} events were accepted and ${handled} handled`],
  ]
  const grown = trendsOf(samples).filter(({ rise, limit }) => !(rise <= limit))
  return [
    ...faults.flatMap(([holds, fault]) => (holds ? [fault] : [])),
    ...grown.map(
      ({ quantity, rise, limit }) => `${quantity} rose by ${megabytes(rise)}, more than ${megabytes(limit)}`,
    ),
  ]
}

export const trendText = ({ quantity, mean, perMinute, perEvent }: Trend): string =>
  `${quantity} ${megabytes(mean)} ${signed(perMinute, 0)} B/min ${signed(perEvent, 1)} B/event`

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`
const signed = (value: number, digits: number) => `${value < 0 ? '' : '+'}${value.toFixed(digits)}`
