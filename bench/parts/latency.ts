import type { Flood, Pace } from '../children/load.ts'
import { type Contender, contenderOf } from '../contenders/index.ts'
import { median, number, percentile, printTable } from '../report.ts'
import { withServer } from './http.ts'

const contenders = ['node:http, by hand', 'node:http, `nodeHandler`'].map(contenderOf)
const warmUp = 12_000
const seconds = 2
const handlersMs = [0, 20, 5_000]
const shares = [0.5, 0.9]

/** Measures the deliveries per second that a server takes at most. */
const fullRate = (contender: Contender): Promise<number> =>
  withServer(contender, {}, async (port, _server, load) => {
    await load({ ask: 'flood', port, kind: 'new', first: 0, deliveries: warmUp })
    return (await load<Flood>({ ask: 'flood', port, kind: 'new', first: warmUp, deliveries: 20_000 })).perSecond
  })

/** Measures the milliseconds to each acknowledgement, at each rate one after the other. */
function latencies(contender: Contender, handlerMs: number, rates: readonly number[]): Promise<(readonly number[])[]> {
  return withServer(contender, { BENCH_HANDLER_MS: `${handlerMs}` }, async (port, _server, load) => {
    await load({ ask: 'flood', port, kind: 'new', first: 0, deliveries: warmUp })
    const measured: (readonly number[])[] = []
    let first = warmUp
    for (const perSecond of rates) {
      const { acknowledged, latencies } = await load<Pace>({ ask: 'pace', port, first, perSecond, seconds })
      if (acknowledged !== latencies.length) throw new Error(`${contender.name} rejected deliveries`)
      measured.push(latencies)
      first += latencies.length
    }
    return measured
  })
}

/** Prints the time to the acknowledgement at half and at 90 % of the rate that the slower one can take. */
export async function measureLatency(rounds: number): Promise<void> {
  const samples = new Map<string, { readonly p50: number; readonly p99: number }[]>()
  const full: number[] = []
  for (let round = 0; round < rounds; round++) {
    const order = round % 2 === 0 ? contenders : contenders.toReversed()
    const rate = Math.min(await fullRate(order[0] as Contender), await fullRate(order[1] as Contender))
    full.push(rate)
    const rates = shares.map((share) => Math.round(share * rate))
    for (const handlerMs of handlersMs) {
      for (const contender of order) {
        for (const [index, values] of (await latencies(contender, handlerMs, rates)).entries()) {
          const id = [handlerMs, shares[index], contender.name].join()
          const sample = { p50: percentile(values, 0.5), p99: percentile(values, 0.99) }
          samples.set(id, [...(samples.get(id) ?? []), sample])
        }
      }
    }
  }
  const rows = handlersMs.flatMap((handlerMs) =>
    shares.map((share) => {
      const cells = contenders.flatMap(({ name }) => {
        const own = samples.get([handlerMs, share, name].join()) ?? []
        return (['p50', 'p99'] as const).map((field) => number(median(own.map((sample) => sample[field])), 1))
      })
      return [`${number(share * 100)} %, handlers of ${number(handlerMs)} ms`, ...cells]
    }),
  )
  const head = contenders.flatMap(({ name }) => [`${name}: p50`, 'p99'])
  printTable(`Milliseconds to the acknowledgement; 100 % is ${number(median(full))} deliveries/s`, ['', ...head], rows)
}
