import { setTimeout as pause } from 'node:timers/promises'
import { hashMedia } from '../../src/inbox/postgres/keys.ts'
import { number, percentile, printTable, spread } from '../report.ts'
import { fill } from './backlog.ts'
import { type Bench, latenciesOf, type NewQueue, type QueueProcess, withProcesses } from './bench.ts'
import { slowMedia } from './queues.ts'

const waiting = 1_000_000
const retrying = 600_000
const dead = 1_000_000
const handled = 1_000_000
const processes = 10

/** The time between two processes that join or leave, in ms. */
const joinMs = 500

/** The rate of the events whose latency is measured. */
const perSecond = 20

/** The parts of a round's time in which events are accepted as fast as possible, and in which the latency is measured. */
const parts = { loaded: 0.3, paced: 0.5 }

/** Prepares a queue whose tables are empty. Resolves with what ends the condition. */
type Prepare = (queue: NewQueue, others: readonly QueueProcess[]) => Promise<Condition>

interface Condition {
  /** Runs during each measurement, until it is aborted. */
  meanwhile?(signal: AbortSignal): Promise<void>
  end?(): Promise<unknown>
}

const conditions: Readonly<Record<string, { readonly others?: number; readonly prepare: Prepare }>> = {
  [`${number(waiting)} waiting events of one media item, the first one in a handler of another process`]: {
    others: 1,
    async prepare(queue, [holder]) {
      const media = { id: slowMedia, hash: hashMedia(slowMedia) }
      await fill(queue, 1, { media })
      await holder?.open('postgresInbox', queue.settings)
      while ((await queue.query(`SELECT FROM ${queue.settings.name}.lane WHERE owner IS NOT NULL`)).length === 0)
        await pause(10)
      await fill(queue, waiting, { media })
      return {}
    },
  },
  [`${number(retrying)} events that wait for a retry`]: {
    async prepare(queue) {
      await fill(queue, retrying, { dueAt: `now() + interval '1 hour'` })
      return {}
    },
  },
  [`${number(dead)} dead letters, all older than \`ttlMs\``]: {
    async prepare(queue) {
      await fill(queue, dead)
      await deadLetterAll(queue)
      return {}
    },
  },
  [`${number(handled)} events handled while a snapshot is open`]: {
    async prepare(queue) {
      const close = await queue.openSnapshot()
      await handleAll(queue)
      return { end: close }
    },
  },
  [`${number(handled)} events handled without autovacuum`]: {
    async prepare(queue) {
      const { query, settings } = queue
      const tables = await query(`SELECT tablename FROM pg_tables WHERE schemaname = $1`, [settings.name])
      for (const { tablename } of tables)
        await query(`ALTER TABLE ${settings.name}.${tablename} SET (autovacuum_enabled = off)`)
      await handleAll(queue)
      return {}
    },
  },
  [`${processes} processes, one of which joins or leaves every ${joinMs} ms`]: {
    others: processes,
    async prepare({ settings }, others) {
      const open = new Set<QueueProcess>()
      async function toggle(process: QueueProcess): Promise<void> {
        if (open.delete(process)) return process.close()
        open.add(process)
        await process.open('postgresInbox', settings)
      }
      let turn = 0
      return {
        async meanwhile(signal) {
          for (; !signal.aborted; turn++) {
            await Promise.all([toggle(others[turn % processes] as QueueProcess), pause(joinMs)])
          }
          await Promise.all([...open].map(toggle))
        },
      }
    },
  },
}

/** Makes dead letters of all events. Their keys are old. */
const deadLetterAll = async ({ settings: { name }, query }: NewQueue): Promise<void> => {
  await query(
    `UPDATE ${name}.event SET attempts = 5, failed = '[]', died_at = now(), received_at = now() - interval '2 days' + id * interval '1 ms'`,
  )
  await query(`UPDATE ${name}.lane SET position = (SELECT max(id) FROM ${name}.event), ready_at = 'infinity'`)
}

/** Does with SQL what accepting, claiming and handling do, in batches. */
async function handleAll(queue: NewQueue): Promise<void> {
  const {
    settings: { name },
    query,
  } = queue
  const batch = handled / 20
  for (let left = handled; left > 0; left -= batch) {
    await fill(queue, batch)
    await query(
      `UPDATE ${name}.lane SET owner = gen_random_uuid(), turn = turn + 1, ready_at = 'infinity' WHERE ready_at < 'infinity'`,
    )
    await query(`UPDATE ${name}.event SET attempts = 1, event = NULL, ended_at = now() WHERE ended_at IS NULL`)
    await query(
      `UPDATE ${name}.lane SET owner = NULL, position = (SELECT max(id) FROM ${name}.event) WHERE owner IS NOT NULL`,
    )
  }
}

/** A queue with a process that accepts and one that handles. */
interface Pair {
  readonly queue: NewQueue
  readonly front: QueueProcess
  readonly back: QueueProcess
  readonly others: readonly QueueProcess[]
  readonly rates: number[]
  readonly latencies: number[]
}

/** Measures conditions that must not disturb the events of other media items, beside an inbox without them. */
export async function measureConditions(bench: Bench): Promise<void> {
  const cells: string[][] = []
  for (const [title, { others = 0, prepare }] of Object.entries(conditions)) {
    await withProcesses(4 + others, async (processes) => {
      const plain = await pairOf(bench, processes.slice(0, 2))
      const pair = await pairOf(bench, processes.slice(2))
      const condition = await prepare(pair.queue, pair.others)
      try {
        for (const { queue, front, back } of [plain, pair]) {
          await back.open('postgresInbox', queue.settings)
          await front.open('postgresInbox', { ...queue.settings, handles: false })
        }
        // The first round warms up the compiler.
        for (let round = 0; round <= bench.rounds; round++) {
          for (const measured of [plain, pair]) {
            const over = new AbortController()
            const meanwhile = measured === pair ? condition.meanwhile?.(over.signal) : undefined
            const sample = await measure(measured, bench.seconds)
            over.abort()
            await meanwhile
            if (round === 0) continue
            measured.rates.push(sample.rate)
            measured.latencies.push(...sample.latencies)
          }
        }
      } finally {
        await condition.end?.()
      }
      cells.push([title, ...cellsOf(plain, pair)])
    })
  }
  printTable(
    'What must not matter to the events of other media items: accepted by one process and handled by another',
    [
      '',
      'accepted and handled/s',
      'without',
      'with / without',
      'min-max',
      'ms to the handler, p50',
      'without',
      'p99',
      'without',
    ],
    cells,
  )
}

async function pairOf(bench: Bench, [front, back, ...others]: readonly QueueProcess[]): Promise<Pair> {
  if (front === undefined || back === undefined) throw new Error('two processes are needed')
  const queue = await bench.newQueue()
  // It makes the tables.
  await front.open('postgresInbox', { ...queue.settings, handles: false })
  await front.close()
  return { queue, front, back, others, rates: [], latencies: [] }
}

async function measure(pair: Pair, seconds: number): Promise<{ readonly rate: number; readonly latencies: number[] }> {
  const { front, back, others } = pair
  const handlers = [back, ...others]
  const handled = async () => (await Promise.all(handlers.map((process) => process.total()))).reduce((a, b) => a + b)
  const before = await handled()
  const startedAt = performance.now()
  const { accepted } = await front.load(parts.loaded * seconds, { waits: false })
  while ((await handled()) < before + accepted) await pause(20)
  const rate = accepted / ((performance.now() - startedAt) / 1_000)
  const calls = await front.pace(perSecond, parts.paced * seconds)
  return { rate, latencies: await latenciesOf(calls, handlers) }
}

function cellsOf(plain: Pair, pair: Pair): string[] {
  const { median, min, max } = spread(pair.rates.map((rate, round) => rate / (plain.rates[round] ?? Number.NaN)))
  const rates = [pair, plain].map(({ rates }) => number(spread(rates).median))
  const latencies = [0.5, 0.99].flatMap((share) =>
    [pair, plain].map(({ latencies }) => number(percentile(latencies, share), 1)),
  )
  return [...rates, `${number(100 * median)} %`, `${number(100 * min)}-${number(100 * max)} %`, ...latencies]
}
