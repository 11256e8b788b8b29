import type { Spread } from '../children/queue.ts'
import { contenderOf, postgresOverExpress } from '../contenders/index.ts'
import { inTurns, printCosts } from '../measure.ts'
import { buildWorkingTree } from '../package.ts'
import { overHttp, stopLoad } from '../parts/http.ts'
import { number, printTable, spread } from '../report.ts'
import { type Bench, type NewQueue, type QueueProcess, withProcesses } from './bench.ts'
import { type QueueName, queueNames } from './queues.ts'

type Sample = Readonly<Record<string, number>>

interface Measurement {
  readonly title: string
  readonly queues: readonly QueueName[]
  /** Opens the queue of that name in the process. It is opened once for all rounds. */
  open(process: QueueProcess, name: QueueName, queue: NewQueue): Promise<void>
  measure(process: QueueProcess, name: QueueName, queue: NewQueue): Promise<Sample>
}

/** Measures queues in interleaved rounds, each in a process of its own. */
async function inRounds(bench: Bench, { title, queues, open, measure }: Measurement): Promise<void> {
  const measured = await withProcesses(queues.length, async (processes) => {
    const contenders = await Promise.all(
      queues.map(async (name, index) => {
        const process = processes[index] as QueueProcess
        const queue = await bench.newQueue()
        await open(process, name, queue)
        return { name, process, queue, samples: [] as Sample[] }
      }),
    )
    // The first round warms up the compiler.
    for (let round = 0; round <= bench.rounds; round++) {
      for (const { name, process, queue, samples } of contenders) {
        const sample = await measure(process, name, queue)
        if (round > 0) samples.push(sample)
      }
    }
    return contenders
  })
  const columns = Object.keys(measured[0]?.samples[0] ?? {})
  printTable(
    title,
    ['', ...columns.flatMap((column) => [column, 'min-max'])],
    measured.map(({ name, samples }) => {
      const cells = columns.flatMap((column) => {
        const { median, min, max } = spread(samples.map((sample) => sample[column] ?? Number.NaN))
        return [number(median), `${number(min)}-${number(max)}`]
      })
      return [name, ...cells]
    }),
  )
}

/** Measures the events that a process stores per second, and does not handle. */
export const measureAccepting = (bench: Bench): Promise<void> =>
  inRounds(bench, {
    title: 'Accepted per second in process, 64 callers',
    queues: ['postgresInbox', 'bullmqInbox'],
    open: (process, name, { settings }) => process.open(name, { ...settings, handles: false }),
    async measure(process) {
      const { acceptedPerSecond } = await process.load(bench.seconds, { waits: false })
      return { 'accepted/s': acceptedPerSecond }
    },
  })

/** Measures a delivery over Express, against the memory inbox. It builds the package first. */
export async function measureOverExpress(bench: Bench): Promise<void> {
  process.env['BENCH_PACKAGE'] = buildWorkingTree()
  process.env['BENCH_POSTGRES'] = (await bench.newQueue()).settings.postgres
  const measured = [contenderOf('Express, `expressHandler`'), postgresOverExpress].map(overHttp)
  printCosts('A delivery over Express', measured, await inTurns(measured, bench.rounds))
  await stopLoad()
}

/** Measures the events that a process stores and handles per second, with empty handlers or a transaction each. */
const measureHandlingWith = (bench: Bench, title: string, queues: readonly QueueName[], writes: boolean) =>
  inRounds(bench, {
    title,
    queues,
    open: (process, name, { settings }) => process.open(name, { ...settings, writes }),
    async measure(process) {
      const { acceptedPerSecond, handledPerSecond } = await process.load(bench.seconds, { waits: true })
      return { 'accepted and handled/s': handledPerSecond, 'accepted/s meanwhile': acceptedPerSecond }
    },
  })

export const measureHandling = (bench: Bench): Promise<void> =>
  measureHandlingWith(bench, 'Accepted and handled by one process, 64 callers, empty handlers', queueNames, false)

export const measureTransactions = (bench: Bench): Promise<void> =>
  measureHandlingWith(
    bench,
    'Accepted and handled by one process, 64 callers, a transaction with one INSERT each',
    ['postgresInbox', 'graphile-worker', 'graphile-worker, local queue'],
    true,
  )

/** Backlogs that an inbox with lanes may handle at another speed than a queue without. */
const backlogs: readonly { readonly title: string; readonly spread: Spread; readonly snapshot?: true }[] = [
  { title: 'one a media item', spread: 'one' },
  { title: 'five a media item', spread: 'five' },
  { title: 'half of them of one media item', spread: 'hot' },
  { title: 'one a media item, while a snapshot is open', spread: 'one', snapshot: true },
]

/** Measures the events of a backlog that a process handles per second. */
export async function measureDraining(bench: Bench): Promise<void> {
  const backlog = 4_000 * bench.seconds
  for (const { title, spread, snapshot } of backlogs) {
    await inRounds(bench, {
      title: `Handled by one process from a backlog of ${number(backlog)}, ${title}, empty handlers`,
      queues: spread === 'one' && !snapshot ? queueNames : ['postgresInbox', 'graphile-worker, local queue'],
      async open() {},
      async measure(process, name, { settings, openSnapshot }) {
        await process.open(name, { ...settings, handles: false })
        await process.fill(backlog, spread)
        await process.close()
        const close = snapshot && (await openSnapshot())
        await process.open(name, settings)
        const handledPerSecond = await process.untilHandled(backlog)
        await process.close()
        await close?.()
        return { 'handled/s': handledPerSecond }
      },
    })
  }
}
