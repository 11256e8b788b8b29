import { median, number, printTable, type Spread, spread } from './report.ts'

/** The cost of a delivery for the measured process, its handling included. */
export interface Cost {
  /** Microseconds of CPU time in user mode. */
  readonly user: number
  /** Microseconds of CPU time in user mode and in the kernel. */
  readonly total: number
  readonly perSecond: number
  /** In user mode. Absent where perf cannot count them. */
  readonly instructions?: number | undefined
}

/** Something that can be measured beside others. */
export interface Measured {
  readonly name: string
  /** The names of those that it is compared with. */
  readonly beside?: readonly string[]
  /** Measures it in a fresh process. */
  measure(): Promise<Cost>
}

/** The costs in each round, by name. */
export type Samples = ReadonlyMap<string, readonly Cost[]>

/** Measures each once in every round. The order alternates, so that a slow phase of the machine hits all alike. */
export async function inTurns(measured: readonly Measured[], rounds: number): Promise<Samples> {
  const samples = new Map<string, Cost[]>(measured.map(({ name }) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    for (const { name, measure } of round % 2 === 0 ? measured : measured.toReversed()) {
      samples.get(name)?.push(await measure())
    }
  }
  return samples
}

/** The deliveries per CPU time of one, divided by those of the other, in each round. Above 1, the first is ahead. */
function ratioOf(samples: Samples, name: string, other: string): Spread {
  const others = samples.get(other) ?? []
  const own = samples.get(name) ?? []
  return spread(own.map(({ total }, round) => (others[round]?.total ?? Number.NaN) / total))
}

/** Prints a row for each, and one more for each further comparison. */
export function printCosts(title: string, measured: readonly Omit<Measured, 'measure'>[], samples: Samples): void {
  const rows = measured.flatMap(({ name, beside = [] }) => {
    const costs = samples.get(name) ?? []
    const medianOf = (field: 'user' | 'total' | 'perSecond', digits = 0) =>
      number(median(costs.map((cost) => cost[field])), digits)
    const own = [name, medianOf('user', 1), medianOf('total', 1), ...instructionsOf(costs), medianOf('perSecond')]
    const compared = beside
      .filter((other) => samples.has(other))
      .map((other) => {
        const { median, min, max } = ratioOf(samples, name, other)
        return [`**${number(median, 2)}** (${number(min, 2)} to ${number(max, 2)})`, other]
      })
    const [first = ['', ''], ...further] = compared
    return [[...own, ...first], ...further.map((cells) => [...own.map(() => ''), ...cells])]
  })
  const counts = [...samples.values()].some((costs) => instructionsOf(costs).length > 0)
  const columns = ['µs of CPU, user', 'user and system', ...(counts ? ['instructions'] : []), 'deliveries/s']
  printTable(title, ['', ...columns, '× per CPU time (spread)', 'beside'], rows)
}

function instructionsOf(costs: readonly Cost[]): string[] {
  const counted = costs.flatMap(({ instructions }) => instructions ?? [])
  return counted.length === 0 ? [] : [number(median(counted))]
}
