import { once } from 'node:events'
import { Logger as GraphileLogger, makeWorkerUtils, run, runMigrations } from 'graphile-worker'
import pg from 'pg'
import { PgBoss } from 'pg-boss'
import { bullmqInbox } from '../../src/inbox/bullmq.ts'
import type { Handle, Inbox, InboxDefinition } from '../../src/inbox/inbox.ts'
import { postgresInbox } from '../../src/inbox/postgres.ts'
import { eventOf } from '../../test/support/inbox.ts'
import { hostOf } from '../host.ts'

/** A queue that stores events and handles them, in one process. */
export interface Queue {
  /** Stores an event. Resolves once Postgres has committed it, or Redis has answered. */
  accept(key: string, mediaId?: string): Promise<unknown>
  close(): Promise<unknown>
}

export interface QueueOptions {
  /** The URLs of the servers. */
  readonly postgres: string
  readonly redis: string
  /** The name of the queue, or of its schema. */
  readonly name: string
  /** `false`: it only accepts. */
  readonly handles: boolean
  /** `true`: the handler inserts a row in a transaction. Otherwise it is empty. */
  readonly writes: boolean
  /** The time for which `postgresInbox` remembers keys, in ms. */
  readonly ttlMs?: number | undefined
  readonly onStart: (key: string) => void
  readonly onHandled: () => void
}

export const queueNames = [
  'postgresInbox',
  'bullmqInbox',
  'graphile-worker',
  'graphile-worker, local queue',
  'pg-boss',
] as const
export type QueueName = (typeof queueNames)[number]

/** The media item whose events `postgresInbox` handles until it is closed. */
export const slowMedia = 'slow'

/** The events that each queue handles at a time. */
const concurrency = 16

const insert = 'INSERT INTO written (key) VALUES ($1)'

const openers: Readonly<Record<QueueName, (options: QueueOptions) => Promise<Queue>>> = {
  async postgresInbox({ postgres, name, ttlMs = 86_400_000, ...options }) {
    const pool = new pg.Pool({ connectionString: postgres, max: concurrency })
    const definition = postgresInbox({ pool, schema: name, handles: options.handles, concurrency, ttlMs })
    return openInbox(definition, options, () => pool.end())
  },
  async bullmqInbox({ redis, name, ...options }) {
    return openInbox(bullmqInbox({ connection: redis, queue: name, handles: options.handles, concurrency }), options)
  },
  'graphile-worker': (options) => openGraphileWorker(options, {}),
  // The settings that its documentation recommends for maximum throughput.
  'graphile-worker, local queue': (options) =>
    openGraphileWorker(options, { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 }),
  'pg-boss': openPgBoss,
}

export const openQueue = (name: QueueName, options: QueueOptions): Promise<Queue> => openers[name](options)

async function openInbox(
  definition: InboxDefinition,
  { writes, onStart, onHandled }: Pick<QueueOptions, 'writes' | 'onStart' | 'onHandled'>,
  closed?: () => Promise<void>,
): Promise<Queue> {
  const closing = new AbortController()
  const handle: Handle = async ({ event: { key, mediaId } }, attempt) => {
    onStart(key)
    if (mediaId === slowMedia) await once(closing.signal, 'abort')
    const write = (client: pg.PoolClient) => client.query(insert, [key])
    // Asking for the signal makes one, as in a handler.
    if (writes) await attempt.transaction?.({ handler: 'insert', signal: attempt.signal }, write).catch(fail)
    onHandled()
    return { status: 'done' }
  }
  const inbox: Inbox = definition.open(hostOf(handle))
  await inbox.ready?.()
  return {
    accept: async (key, mediaId) => inbox.accept(eventOf(key, mediaId)),
    async close() {
      closing.abort()
      await inbox.close()
      await closed?.()
    },
  }
}

async function openGraphileWorker(
  { postgres, name, handles, writes, onStart, onHandled }: QueueOptions,
  worker: GraphileConfig.WorkerOptions,
): Promise<Queue> {
  // As many connections as postgresInbox makes.
  const pgPool = new pg.Pool({ connectionString: postgres, max: concurrency + 4 })
  pgPool.on('error', fail)
  pgPool.on('connect', (client) => client.on('error', fail))
  const logger = new GraphileLogger(() => (level, message) => level === 'error' && fail(message))
  const shared = { pgPool, schema: name, logger }
  await runMigrations(shared)
  if (!handles) {
    const utils = await makeWorkerUtils(shared)
    return {
      accept: (key) => utils.addJob('handle', eventOf(key)),
      async close() {
        await utils.release()
        await pgPool.end()
      },
    }
  }
  const runner = await run({
    ...shared,
    concurrency,
    noHandleSignals: true,
    preset: { worker: { ...worker, maxPoolSize: concurrency + 4 } },
    taskList: {
      async handle(payload, { withPgClient }) {
        const { key } = (payload as ReturnType<typeof eventOf>).event
        onStart(key)
        if (writes)
          await withPgClient(async (client) => {
            await client.query('BEGIN')
            await client.query(insert, [key])
            await client.query('COMMIT')
          }).catch(fail)
        onHandled()
      },
    },
  })
  return {
    accept: (key) => runner.addJob('handle', eventOf(key)),
    async close() {
      await runner.stop()
      await pgPool.end()
    },
  }
}

async function openPgBoss({ postgres, name, handles, onStart, onHandled }: QueueOptions): Promise<Queue> {
  const connection = { connectionString: postgres, schema: name, max: concurrency + 4 }
  const boss = new PgBoss({ ...connection, useListenNotify: true })
  boss.on('error', fail)
  await boss.start()
  await boss.createQueue('events', { notify: true })
  if (handles)
    // Batches, fetched without a pause while they are full, are its fastest way.
    await boss.work<ReturnType<typeof eventOf>>(
      'events',
      { batchSize: 2_000, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 },
      async (jobs) => {
        for (const { data } of jobs) {
          onStart(data.event.key)
          onHandled()
        }
      },
    )
  return { accept: (key) => boss.send('events', eventOf(key)), close: () => boss.stop({ graceful: false }) }
}

/** Ends the process: a measurement with errors is worthless. */
function fail(error: unknown): never {
  console.error(error)
  process.exit(1)
}
