import { startChild } from './child.ts'
import type { LoadQuestion, Pace } from './children/load.ts'
import type { ServerQuestion } from './children/server.ts'
import { slowHandlers } from './contenders/index.ts'
import { number, percentile, printTable } from './report.ts'
import type { Tally } from './tally.ts'

const perSecond = 100
const seconds = 10

export interface SlowResult {
  readonly p50: number
  readonly p99: number
  readonly max: number
}

/** Measures milliseconds to the acknowledgement while every handler takes 5 s. */
export async function measureSlowHandlers(): Promise<SlowResult> {
  const server = startChild(new URL('./children/server.ts', import.meta.url), {
    core: 'measured',
    args: [slowHandlers.name],
  })
  const load = startChild(new URL('./children/load.ts', import.meta.url), { core: 'load' })
  try {
    const port = await server.ask<number>({ ask: 'port' } satisfies ServerQuestion)
    const { sent, acknowledged, latencies } = await load.ask<Pace>({
      ask: 'pace',
      port,
      perSecond,
      seconds,
    } satisfies LoadQuestion)
    const { calls, events } = await server.ask<Tally>({ ask: 'work', expected: 0 } satisfies ServerQuestion)
    // Most events are still waiting. None may have been handled twice.
    if (acknowledged !== sent || calls !== events || calls === 0) {
      throw new Error(
        `acknowledged ${acknowledged} of ${sent} deliveries, handled ${events} events with ${calls} calls`,
      )
    }
    return { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99), max: percentile(latencies, 1) }
  } finally {
    await Promise.all([server.stop(), load.stop()])
  }
}

export function printSlowHandlers({ p50, p99, max }: SlowResult): void {
  printTable(
    `Milliseconds to the acknowledgement, ${perSecond} deliveries/s for ${seconds} s, handlers of 5 s`,
    ['contender', 'p50', 'p99', 'max'],
    [[slowHandlers.name, number(p50, 2), number(p99, 2), number(max, 2)]],
  )
}
