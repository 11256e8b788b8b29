import { number, percentile, printTable } from '../report.ts'
import { type Bench, latenciesOf, withProcesses } from './bench.ts'
import { type QueueName, queueNames } from './queues.ts'

const perSecond = 20

/** Measures the milliseconds from the call that accepts an event until its handler starts in another process. */
export async function measureLatency(bench: Bench): Promise<void> {
  const cells: string[][] = []
  for (const queue of queueNames) {
    const latencies = await latenciesIn(bench, queue)
    const column = (share: number) => number(percentile(latencies, share), 1)
    cells.push([queue, column(0.5), column(0.99), column(1), number(latencies.length)])
  }
  printTable(
    `Milliseconds from the call that accepts until the handler starts in another process, ${perSecond} events/s`,
    ['', 'p50', 'p99', 'max', 'events'],
    cells,
  )
}

const latenciesIn = (bench: Bench, queue: QueueName): Promise<number[]> =>
  withProcesses(2, async ([front, back]) => {
    if (front === undefined || back === undefined) throw new Error('two processes are needed')
    const { settings } = await bench.newQueue()
    await back.open(queue, settings)
    await front.open(queue, { ...settings, handles: false })
    // The first second warms up.
    await front.pace(perSecond, 1)
    const calls = await front.pace(perSecond, bench.rounds * bench.seconds)
    return latenciesOf(calls, [back])
  })
