import { setTimeout as pause } from 'node:timers/promises'
import { number, printTable } from '../report.ts'
import { type Bench, withProcesses } from './bench.ts'

const perSecond = 1_000
/** Keys are remembered for a short time, so that their clean-up takes part. */
const ttlMs = 30_000
const samples = 10

interface Sizes {
  readonly event: string
  readonly event_indexes: string
  readonly lane: string
  readonly lane_indexes: string
  readonly keys: string
}

/** Measures the sizes of the tables and indexes under a steady load. They have to stop growing. */
export async function measureGrowth(bench: Bench, minutes: number): Promise<void> {
  const rows = await withProcesses(1, async ([process]) => {
    const { settings, query } = await bench.newQueue()
    await process?.open('postgresInbox', { ...settings, ttlMs })
    const load = process?.pace(perSecond, minutes * 60)
    const rows: string[][] = []
    for (let sample = 1; sample <= samples; sample++) {
      await pause((minutes * 60_000) / samples)
      const [sizes] = await query<Sizes & Record<string, string>>(sizesOf(settings.name))
      const { event, event_indexes, lane, lane_indexes, keys } = sizes as Sizes
      const megabytes = [event, event_indexes, lane, lane_indexes].map((bytes) => number(Number(bytes) / 1e6, 1))
      rows.push([`${number((sample * minutes * 60) / samples)} s`, ...megabytes, number(Number(keys))])
    }
    await load
    return rows
  })
  printTable(
    `Sizes in MB under a steady load of ${number(perSecond)} events/s, keys remembered for ${ttlMs / 1_000} s`,
    ['after', 'event', 'its indexes', 'lane', 'its indexes', 'keys'],
    rows,
  )
}

const sizesOf = (schema: string): string => `
  SELECT pg_relation_size('${schema}.event') AS event, pg_indexes_size('${schema}.event') AS event_indexes,
    pg_relation_size('${schema}.lane') AS lane, pg_indexes_size('${schema}.lane') AS lane_indexes,
    (SELECT count(*) FROM ${schema}.event) AS keys`
