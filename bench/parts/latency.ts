import type { Flood, Pace } from '../children/load.ts'
import { type Contender, contenderOf } from '../contenders/index.ts'
import { median, number, percentile, printTable } from '../report.ts'
import { withServer } from './http.ts'

const contenders = ['node:http, by hand', 'node:http, `nodeHandler`'].map(contenderOf)
const warmUp = 12_000
const seconds = 4
const handlersMs = [0, 20, 5_000]
const shares = [0.5, 0.9]

const handlersOf = (ms: number) => ({ BENCH_HANDLER_MS: `${ms}` })

/** Measures the maximum number of deliveries per second that a server takes. */
const fullRate = (contender: Contender, handlerMs: number): Promise<number> =>
  withServer(contender, handlersOf(handlerMs), async (port, _server, load) => {
    await load({ ask: 'flood', port, kind: 'new', first: 0, deliveries: warmUp })
    return (await load<Flood>({ ask: 'flood', port, kind: 'new', first: warmUp, deliveries: 20_000 })).perSecond
  })

/** Measures the milliseconds to each acknowledgement, at each rate one after the other. */
function latencies(contender: Contender, handlerMs: number, rates: readonly number[]): Promise<(readonly number[])[]> {
  return withServer(contender, handlersOf(handlerMs), async (port, _server, load) => {
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

interface Sample {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
}

/** Prints the time to the acknowledgement at half and at 90 % of the rate that the slower one can take. */
export async function measureLatency(rounds: number): Promise<void> {
  const samples = new Map<string, Sample[]>()
  for (let round = 0; round < rounds; round++) {
    const order = round % 2 === 0 ? contenders : contenders.toReversed()
    for (const handlerMs of handlersMs) {
      const full: number[] = []
      for (const contender of order) full.push(await fullRate(contender, handlerMs))
      const rates = shares.map((share) => Math.round(share * Math.min(...full)))
      for (const contender of order) {
        for (const [index, values] of (await latencies(contender, handlerMs, rates)).entries()) {
          const id = [handlerMs, shares[index], contender.name].join()
          const [p50, p99] = [percentile(values, 0.5), percentile(values, 0.99)]
          samples.set(id, [...(samples.get(id) ?? []), { perSecond: rates[index] ?? Number.NaN, p50, p99 }])
        }
      }
    }
  }
  printLatency(samples)
}

function printLatency(samples: ReadonlyMap<string, readonly Sample[]>): void {
  const rows = handlersMs.flatMap((handlerMs) =>
    shares.map((share) => {
      const own = contenders.map(({ name }) => samples.get([handlerMs, share, name].join()) ?? [])
      const medianOf = (of: readonly Sample[], field: keyof Sample, digits = 1) =>
        number(median(of.map((sample) => sample[field])), digits)
      const rate = `${number(share * 100)} %: ${medianOf(own[0] ?? [], 'perSecond', 0)}/s`
      const cells = own.flatMap((of) => [medianOf(of, 'p50'), medianOf(of, 'p99')])
      return [`handlers of ${number(handlerMs)} ms, ${rate}`, ...cells]
    }),
  )
  const head = contenders.flatMap(({ name }) => [`${name}: p50`, 'p99'])
  printTable('Milliseconds to the acknowledgement, at shares of the highest rate', ['', ...head], rows)
}
