import { type Child, startChild } from './child.ts'
import type { BurstCost, BurstQuestion } from './children/bursts.ts'
import type { DeliveryQuestion, InProcessCost, ServerWork } from './children/delivery.ts'
import type { Flood, LoadQuestion } from './children/load.ts'
import { number, printTable, spread } from './report.ts'

/** Two implementations to compare, and the script that runs each. */
export interface Pair {
  readonly names: readonly [string, string]
  readonly scripts: readonly [URL, URL]
}

/** The costs of both implementations, measured one right after the other. */
export type Sample<Cost> = readonly [Cost, Cost]

const flags = ['--expose-gc']

/** Measures both in turns, `rounds` times in each of `processes` pairs of fresh processes. The first one alternates. */
async function inPairs<Cost>(
  { names, scripts }: Pair,
  { processes, rounds }: { readonly processes: number; readonly rounds: number },
  measure: (child: Child) => Promise<Cost>,
): Promise<Sample<Cost>[]> {
  const samples: Sample<Cost>[] = []
  for (let process = 0; process < processes; process++) {
    const start = (index: 0 | 1) => startChild(scripts[index], { core: 'measured', args: [names[index]], flags })
    const children = [start(0), start(1)] as const
    try {
      for (let round = 0; round < rounds; round++) {
        const firstGoesFirst = (process + round) % 2 === 0
        const before = firstGoesFirst ? undefined : await measure(children[1])
        const first = await measure(children[0])
        samples.push([first, before ?? (await measure(children[1]))])
      }
    } finally {
      await Promise.all(children.map((child) => child.stop()))
    }
  }
  return samples
}

/** Measures entries that come and go in bursts of the given size. */
export function measureBursts(pair: Pair, processes: number, size: BurstQuestion): Promise<Sample<BurstCost>[]> {
  return inPairs(pair, { processes, rounds: 4 }, (child) => child.ask<BurstCost>(size))
}

/** Measures a whole delivery in process. */
export function measureDeliveries(pair: Pair, processes: number): Promise<Sample<InProcessCost>[]> {
  const question: DeliveryQuestion = { ask: 'in-process', deliveries: 50_000 }
  return inPairs(pair, { processes, rounds: 6 }, (child) => child.ask<InProcessCost>(question))
}

/** Measures the microseconds of CPU that a delivery costs a server over node:http. */
export function measureHttpDeliveries(pair: Pair, processes: number, seconds: number): Promise<Sample<number>[]> {
  // A second round would send the same events again.
  return inPairs(pair, { processes, rounds: 1 }, async (server) => {
    const load = startChild(new URL('./children/load.ts', import.meta.url), { core: 'load' })
    try {
      const port = await server.ask<number>({ ask: 'port' } satisfies DeliveryQuestion)
      const flood = { ask: 'flood', port, scheme: 'x-signature', seconds } satisfies LoadQuestion
      const { sent, acknowledged } = await load.ask<Flood>(flood)
      const { cpu, events } = await server.ask<ServerWork>({ ask: 'work', expected: sent } satisfies DeliveryQuestion)
      if (acknowledged !== sent || events !== sent) throw new Error(`handled ${events} of ${sent} events`)
      return cpu / sent
    } finally {
      await load.stop()
    }
  })
}

/** Prints a row for each measurement: both medians, and the median and range of the ratios within the pairs. */
export function printPairs(
  title: string,
  names: readonly [string, string],
  rows: readonly { readonly name: string; readonly samples: readonly Sample<number>[]; readonly digits?: number }[],
): void {
  printTable(
    title,
    ['', ...names, `${names[1]} / ${names[0]}`, 'min-max', 'pairs'],
    rows.map(({ name, samples, digits = 0 }) => {
      const ratio = spread(samples.map(([first, second]) => second / first))
      return [
        name,
        number(spread(samples.map(([first]) => first)).median, digits),
        number(spread(samples.map(([, second]) => second)).median, digits),
        number(ratio.median, 3),
        `${number(ratio.min, 3)}-${number(ratio.max, 3)}`,
        number(samples.length),
      ]
    }),
  )
}
