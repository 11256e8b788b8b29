import { writeHead } from '../../src/inbox/sql/head.ts'
import { eventOf } from '../../test/support/inbox.ts'
import { number, printTable, spread } from '../report.ts'
import { type Bench, type NewQueue, withProcesses } from './bench.ts'

const backlog = 1_000_000
/** The events that are claimed in a round, from the large backlog or as the whole backlog. */
const claimed = 20_000

const columns = ['accepted/s', 'claimed and handled/s'] as const

interface FillOptions {
  /** The media item of all of them, with the hash of its id. */
  readonly media?: { readonly id: string; readonly hash: string }
  /** The time of their retry, as SQL. */
  readonly dueAt?: string
}

/**
 * Compares an inbox with a large backlog of waiting events to one without. The large one gets no ANALYZE, as after a sudden
 * flood, unless autovacuum comes in between.
 */
export async function measureBacklog(bench: Bench): Promise<void> {
  const samples: Record<(typeof columns)[number], [number[], number[]]> = {
    'accepted/s': [[], []],
    'claimed and handled/s': [[], []],
  }
  await withProcesses(2, async (processes) => {
    const queues = await Promise.all(processes.map(() => bench.newQueue()))
    for (const [index, process] of processes.entries()) {
      const queue = queues[index] as NewQueue
      await process.open('postgresInbox', { ...queue.settings, handles: false })
      await process.close()
      if (index === 1) await fill(queue, backlog)
    }
    // The first round warms up the compiler.
    for (let round = 0; round <= bench.rounds; round++) {
      for (const [index, process] of processes.entries()) {
        const queue = queues[index] as NewQueue
        await process.open('postgresInbox', { ...queue.settings, handles: false })
        const { acceptedPerSecond } = await process.load(bench.seconds, { waits: false })
        await process.close()
        // Without a backlog, exactly the events that are claimed wait.
        if (index === 0) {
          await queue.query(`TRUNCATE ${queue.settings.name}.event, ${queue.settings.name}.lane`)
          await fill(queue, claimed)
        }
        await process.open('postgresInbox', queue.settings)
        const handledPerSecond = await process.untilHandled(claimed)
        await process.close()
        if (round === 0) continue
        samples['accepted/s'][index as 0 | 1].push(acceptedPerSecond)
        samples['claimed and handled/s'][index as 0 | 1].push(handledPerSecond)
      }
    }
  })
  printTable(
    `A backlog of ${number(backlog)} waiting events`,
    ['', 'without', 'with', 'with / without', 'min-max'],
    columns.map((column) => {
      const [without, withBacklog] = samples[column]
      const { median, min, max } = spread(withBacklog.map((rate, round) => rate / (without[round] ?? Number.NaN)))
      const rates = [without, withBacklog].map((rates) => number(spread(rates).median))
      return [column, ...rates, `${number(100 * median)} %`, `${number(100 * min)}-${number(100 * max)} %`]
    }),
  )
}

/** Inserts waiting events with SQL, each of a media item of its own unless one is given. */
export async function fill(
  { settings: { name }, query }: NewQueue,
  events: number,
  options: FillOptions = {},
): Promise<void> {
  const { media, dueAt = 'NULL' } = options
  const { event } = eventOf('KEY', media?.id ?? 'MEDIA')
  await query(
    `WITH given AS MATERIALIZED (
       SELECT hash, ${media?.hash ?? 'hashtextextended(hash::text, 0)'} AS media
       FROM (SELECT gen_random_uuid() AS hash FROM generate_series(1, $1)) hashes
     ), lanes AS (
       INSERT INTO ${name}.lane (media, ready_at) SELECT DISTINCT media, coalesce(${dueAt}, now()) FROM given
       ON CONFLICT (media) DO UPDATE SET ready_at = now() WHERE lane.ready_at = 'infinity'
     )
     INSERT INTO ${name}.event (hash, media, event, head, received_at, due_at, owed)
     SELECT hash, media, replace(replace($2, 'KEY', hash::text), 'MEDIA', hash::text)::json,
       replace($3, 'KEY', hash::text)::json, now(), ${dueAt}, '[]'
     FROM given`,
    [events, JSON.stringify(event), writeHead(event)],
  )
}
