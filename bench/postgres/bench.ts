import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { PostgresServer } from '../../test/support/postgres/postgres-server.ts'
import { RedisServer } from '../../test/support/redis/redis-server.ts'
import { type Child, startChild } from '../child.ts'
import type { Load, Moments, QueueQuestion, QueueSettings, Spread } from '../children/queue.ts'
import type { QueueName } from './queues.ts'

/** Half of the servers in production have less memory for it. The settings of the disk are as in production. */
const settings = { shared_buffers: '256MB', max_wal_size: '4GB' }

/** A queue that processes can open. */
export interface NewQueue {
  readonly settings: QueueSettings
  /** Runs SQL in its database, on a connection of its own. */
  query<Row extends pg.QueryResultRow>(sql: string, values?: unknown[]): Promise<Row[]>
  /** Opens a snapshot, as a long transaction or a backup does. Resolves with what closes it. */
  openSnapshot(): Promise<() => Promise<void>>
}

async function query<Row extends pg.QueryResultRow>(url: string, sql: string, values?: unknown[]): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<Row>(sql, values)).rows
  } finally {
    await client.end()
  }
}

/** The servers of a benchmark, and what it measures on them. */
export class Bench {
  readonly postgres: PostgresServer
  readonly redis: RedisServer
  readonly rounds: number
  readonly seconds: number
  #queues = 0

  private constructor(postgres: PostgresServer, redis: RedisServer, rounds: number, seconds: number) {
    this.postgres = postgres
    this.redis = redis
    this.rounds = rounds
    this.seconds = seconds
  }

  static async start(rounds: number, seconds: number): Promise<Bench> {
    const postgres = await PostgresServer.start({ settings })
    const redis = await RedisServer.start({ settings: { appendfsync: 'everysec' } })
    return new Bench(postgres, redis, rounds, seconds)
  }

  /** Makes a new queue. It has a database of its own: two schemas of graphile-worker in one would disturb each other. */
  async newQueue(): Promise<NewQueue> {
    const name = `queue_${++this.#queues}`
    const url = await this.postgres.createDatabase(name)
    await query(url, 'CREATE TABLE written (key text NOT NULL)')
    return {
      query: (sql, values) => query(url, sql, values),
      async openSnapshot() {
        const client = new pg.Client({ connectionString: url })
        client.on('error', () => {})
        await client.connect()
        await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT')
        return () => client.end()
      },
      settings: { postgres: url, redis: this.redis.url, name, handles: true, writes: false },
    }
  }

  async remove(): Promise<void> {
    await Promise.all([this.postgres.remove(), this.redis.remove()])
  }
}

/** A process with a queue. */
export class QueueProcess {
  readonly #child: Child = startChild(new URL('../children/queue.ts', import.meta.url), {
    core: 'any',
    runsSources: true,
  })
  #isOpen = false
  #answered: Promise<unknown> = Promise.resolve()

  async open(queue: QueueName, settings: QueueSettings): Promise<void> {
    await this.#ask({ ask: 'open', queue, settings })
    this.#isOpen = true
  }

  load(seconds: number, { waits }: { readonly waits: boolean }): Promise<Load> {
    return this.#ask({ ask: 'load', seconds, waits })
  }

  fill(events: number, spread: Spread = 'one'): Promise<void> {
    return this.#ask({ ask: 'fill', events, spread })
  }

  /** Resolves with the moment of each call. */
  pace(perSecond: number, seconds: number): Promise<Moments> {
    return this.#ask({ ask: 'pace', perSecond, seconds })
  }

  /** Resolves with the events per second since the queue was opened, once so many have been handled. */
  async untilHandled(events: number): Promise<number> {
    return events / (await this.#ask<number>({ ask: 'handled', events }))
  }

  /** Resolves with the number of events that it has handled since it started. */
  total(): Promise<number> {
    return this.#ask({ ask: 'total' })
  }

  /** Resolves with the moment at which the handler of each paced event started. */
  starts(): Promise<Moments> {
    return this.#ask({ ask: 'starts' })
  }

  async close(): Promise<void> {
    if (this.#isOpen) await this.#ask({ ask: 'close' })
    this.#isOpen = false
  }

  async stop(): Promise<void> {
    await this.close()
    await this.#child.stop()
  }

  /** Asks once the previous question is answered. */
  #ask<Answer>(question: QueueQuestion): Promise<Answer> {
    const answer = this.#answered.then(() => this.#child.ask<Answer>(question))
    this.#answered = answer.catch(() => {})
    return answer
  }
}

/** Waits until the handlers of paced events have started. Resolves with the ms from each call until then. */
export async function latenciesOf(calls: Moments, handlers: readonly QueueProcess[]): Promise<number[]> {
  for (;;) {
    const starts: Moments = Object.assign({}, ...(await Promise.all(handlers.map((process) => process.starts()))))
    const latencies = Object.entries(calls).map(([key, calledAt]) => (starts[key] ?? Number.NaN) - calledAt)
    if (!latencies.some(Number.isNaN)) return latencies
    await pause(50)
  }
}

/** Runs work with some processes, and stops them. */
export async function withProcesses<Result>(
  count: number,
  work: (processes: readonly QueueProcess[]) => Promise<Result>,
): Promise<Result> {
  const processes = Array.from({ length: count }, () => new QueueProcess())
  try {
    return await work(processes)
  } finally {
    await Promise.all(processes.map((process) => process.stop()))
  }
}
