import { setTimeout as pause } from 'node:timers/promises'
import { number, printTable } from '../report.ts'
import { type Bench, withProcesses } from './bench.ts'
import { type QueueName, queueNames } from './queues.ts'

/** The measured time, and the time until a queue has come to rest, in s. */
const measuredSeconds = 60
const settlingSeconds = 75

/** Measures the transactions per minute that one process with an empty queue costs Postgres. */
export async function measureIdle(bench: Bench): Promise<void> {
  const queues = queueNames.filter((queue) => queue !== 'bullmqInbox')
  const cells = await Promise.all(
    queues.map(async (queue) => [queue, number(await transactionsPerMinute(bench, queue))]),
  )
  printTable('Transactions per minute of one process that has handled everything', ['', 'transactions'], cells)
}

const transactionsPerMinute = (bench: Bench, queue: QueueName): Promise<number> =>
  withProcesses(1, async ([process]) => {
    const { settings } = await bench.newQueue()
    await process?.open(queue, settings)
    await process?.load(2, { waits: true })
    await pause(settlingSeconds * 1_000)
    const before = await transactionsOf(bench, settings.name)
    await pause(measuredSeconds * 1_000)
    return ((await transactionsOf(bench, settings.name)) - before) * (60 / measuredSeconds)
  })

async function transactionsOf(bench: Bench, database: string): Promise<number> {
  const [row] = await bench.postgres.query<{ transactions: string }>(
    'SELECT xact_commit + xact_rollback AS transactions FROM pg_stat_database WHERE datname = $1',
    [database],
  )
  return Number(row?.transactions)
}
