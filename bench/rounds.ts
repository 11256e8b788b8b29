import { startChild } from './child.ts'
import type { Flood, LoadQuestion } from './children/load.ts'
import type { ServerQuestion, Work } from './children/server.ts'
import type { Contender } from './contenders/index.ts'
import { number, printTable, type Spread, spread } from './report.ts'

export interface HttpResult {
  readonly name: string
  readonly does: string
  readonly perSecond: Spread
  /** Microseconds of CPU, warm-up included. On a shared machine it varies less than the rate. */
  readonly cpuPerDelivery: Spread
  /** The largest share of the time in which the load was busy, from 0 to 1. */
  readonly loadShare: number
  readonly baseline?: string | undefined
  /** The rate divided by that of the baseline, in the same round. */
  readonly ratio?: Spread | undefined
}

type Sample = Flood & { readonly cpuPerDelivery: number }

/** Measures in interleaved rounds. Each runs every contender once, so that a slow phase of the machine affects all. */
export async function measureHttp(contenders: readonly Contender[], rounds: number, seconds: number) {
  const samples = new Map<string, Sample[]>(contenders.map(({ name }) => [name, []]))
  for (let round = 1; round <= rounds; round++) {
    console.log(`round ${round} of ${rounds}`)
    for (const contender of contenders) samples.get(contender.name)?.push(await runOnce(contender, seconds))
  }
  return contenders.map((contender) => resultOf(contender, samples))
}

/** Runs a fresh server for each round, because the compiler optimises each process differently. */
async function runOnce(contender: Contender, seconds: number): Promise<Sample> {
  const server = startChild(new URL('./children/server.ts', import.meta.url), {
    core: 'measured',
    args: [contender.name],
  })
  const load = startChild(new URL('./children/load.ts', import.meta.url), { core: 'load' })
  try {
    const port = await server.ask<number>({ ask: 'port' } satisfies ServerQuestion)
    const flood = await load.ask<Flood>({
      ask: 'flood',
      port,
      scheme: contender.scheme,
      seconds,
    } satisfies LoadQuestion)
    const question: ServerQuestion = { ask: 'work', expected: contender.handles ? flood.sent : 0 }
    const work = await server.ask<Work>(question)
    assertHandled(contender, flood, work)
    return { ...flood, cpuPerDelivery: work.cpu / flood.sent }
  } finally {
    await Promise.all([server.stop(), load.stop()])
  }
}

/** Throws when a delivery was lost or handled twice: such a measurement would be worthless. */
function assertHandled({ name, handles }: Contender, { sent, acknowledged }: Flood, { calls, events }: Work): void {
  if (acknowledged !== sent) throw new Error(`${name} acknowledged ${acknowledged} of ${sent} deliveries`)
  if (handles && (calls !== sent || events !== sent)) {
    throw new Error(`${name} handled ${events} of ${sent} events, with ${calls} calls`)
  }
}

function resultOf({ name, does, baseline }: Contender, samples: ReadonlyMap<string, readonly Sample[]>): HttpResult {
  const own = samples.get(name) ?? []
  const other = baseline === undefined ? undefined : samples.get(baseline)
  const ratios = other && own.map(({ perSecond }, round) => perSecond / (other[round]?.perSecond ?? Number.NaN))
  return {
    name,
    does,
    perSecond: spread(own.map(({ perSecond }) => perSecond)),
    cpuPerDelivery: spread(own.map(({ cpuPerDelivery }) => cpuPerDelivery)),
    loadShare: Math.max(...own.map(({ loadShare }) => loadShare)),
    baseline,
    ratio: ratios && spread(ratios),
  }
}

export function printHttp(results: readonly HttpResult[]): void {
  printTable(
    'Deliveries per second over HTTP',
    ['contender', 'median', 'min-max', 'x baseline', 'min-max', 'baseline', 'CPU us', 'load busy', 'does'],
    results.map(({ name, does, perSecond, cpuPerDelivery, loadShare, baseline, ratio }) => [
      name,
      number(perSecond.median),
      `${number(perSecond.min)}-${number(perSecond.max)}`,
      ratio ? number(ratio.median, 2) : '',
      ratio ? `${number(ratio.min, 2)}-${number(ratio.max, 2)}` : '',
      baseline ?? '',
      number(cpuPerDelivery.median, 1),
      `${number(loadShare * 100)} %`,
      does,
    ]),
  )
}
