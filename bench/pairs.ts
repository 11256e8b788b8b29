import { type Child, startChild } from './child.ts'
import type { BurstCost, BurstQuestion } from './children/bursts.ts'
import type { DeliveryQuestion, InProcessCost, ServerWork } from './children/delivery.ts'
import type { Flood, LoadQuestion } from './children/load.ts'
import { number, printTable, spread } from './report.ts'

/** Two implementations of one thing: the script that runs each. */
export interface Pair {
  readonly names: readonly [string, string]
  readonly scripts: readonly [URL, URL]
}

/** A sample of each implementation, measured one right after the other. */
export type Sample<Cost> = readonly [Cost, Cost]

const flags = ['--expose-gc']

/** Measures both in turns, in fresh processes for each pair, and begins with each as often. */
async function inPairs<Cost>(
  { names, scripts }: Pair,
  pairs: number,
  measure: (child: Child) => Promise<Cost>,
): Promise<Sample<Cost>[]> {
  const samples: Sample<Cost>[] = []
  for (let pair = 0; pair < pairs; pair++) {
    const costs: Cost[] = []
    for (const index of pair % 2 === 0 ? [0, 1] : [1, 0]) {
      const child = startChild(scripts[index as 0 | 1], { core: 'measured', args: [names[index as 0 | 1]], flags })
      try {
        costs[index] = await measure(child)
      } finally {
        await child.stop()
      }
    }
    samples.push(costs as [Cost, Cost])
  }
  return samples
}

/** Entries that come and go in bursts of the given size. */
export function measureBursts(pair: Pair, pairs: number, size: BurstQuestion): Promise<Sample<BurstCost>[]> {
  return inPairs(pair, pairs, async (child) => {
    await child.ask<BurstCost>(size)
    return child.ask<BurstCost>(size)
  })
}

/** A whole delivery in process: the mean of what comes after the compiler's warm-up. */
export function measureDeliveries(pair: Pair, pairs: number): Promise<Sample<InProcessCost>[]> {
  const ask = (child: Child, deliveries: number) =>
    child.ask<InProcessCost>({ ask: 'in-process', deliveries } satisfies DeliveryQuestion)
  return inPairs(pair, pairs, async (child) => {
    await ask(child, 100_000)
    return ask(child, 200_000)
  })
}

/** Microseconds of CPU that a delivery costs the server over node:http. */
export function measureHttpDeliveries(pair: Pair, pairs: number, seconds: number): Promise<Sample<number>[]> {
  return inPairs(pair, pairs, async (server) => {
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

/** One row a measure: the median of each implementation, and the spread of the ratio within the pairs. */
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
