import { median, number, printTable, spread } from '../report.ts'
import type { Setup } from '../takers.ts'
import { costInProcess } from './in-process.ts'

interface Row {
  readonly name: string
  readonly sizes: readonly number[]
  /** The largest takes long: one round has to do. */
  readonly once?: boolean
  setup(size: number): Setup
}

const table: readonly Row[] = [
  { name: 'remembered keys', sizes: [1_000, 100_000, 5_000_000], setup: (keys) => ({ taker: 'oursWithKeys', keys }) },
  {
    name: 'by hand, remembered keys',
    sizes: [1_000, 100_000, 5_000_000],
    setup: (keys) => ({ taker: 'byHandWithKeys', keys }),
  },
  {
    name: 'handlers, one of them for the event',
    sizes: [1, 10, 100],
    setup: (handlers) => ({ taker: 'oursWithHandlers', handlers }),
  },
  {
    name: 'handlers that all run',
    sizes: [1, 10, 100],
    setup: (handlers) => ({ taker: 'oursWithRuns', handlers }),
  },
  {
    name: 'media with an event that is being handled',
    sizes: [1, 1_000, 1_000_000],
    once: true,
    setup: (media) => ({ taker: 'oursWithMedia', media }),
  },
]

/** Prints how the cost of a delivery grows with what the receiver holds. */
export async function measureGrowth(rounds: number): Promise<void> {
  const rows: string[][] = []
  for (const { name, sizes, once = false, setup } of table) {
    const costs = sizes.map((): number[] => [])
    for (let round = 0; round < (once ? 1 : rounds); round++) {
      const order = sizes.map((size, index) => ({ size, index }))
      for (const { size, index } of round % 2 === 0 ? order : order.toReversed()) {
        costs[index]?.push((await costInProcess(setup(size), { deliveries: 100_000 })).total)
      }
    }
    for (const [index, size] of sizes.entries()) {
      const own = costs[index] ?? []
      const ratio = spread(own.map((cost, round) => cost / (costs[0]?.[round] ?? Number.NaN)))
      const cells = [number(ratio.median, 2), `(${number(ratio.min, 2)} to ${number(ratio.max, 2)})`]
      rows.push([`${name}: ${number(size)}`, number(median(own), 1), index === 0 ? '' : cells.join(' ')])
    }
  }
  printTable('The cost as it grows', ['', 'µs of CPU', 'times that of the first'], rows)
}
