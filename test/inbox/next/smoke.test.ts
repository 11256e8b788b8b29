import { Pool } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PostgresDatabase } from '../../../src/inbox/next/postgres/database.ts'
import { Intake, newEventOf } from '../../../src/inbox/next/sql/intake.ts'
import { SqlWorker } from '../../../src/inbox/next/sql/worker.ts'
import { PostgresServer } from '../../support/postgres/postgres-server.ts'
import { silent } from '../../support/silent.ts'

let server: PostgresServer
let pool: Pool
const sums: Record<string, [number, number]> = {}
beforeAll(async () => {
  server = await PostgresServer.start({ settings: {} })
  pool = new Pool({ connectionString: server.url })
  pool.on('error', () => {})
})
afterAll(async () => {
  await pool.end()
  await server.remove()
})
const countdown = (ms: number) => { const end = performance.now() + ms; return (max = 1e9) => Math.max(0, Math.min(end - performance.now(), max)) }

test('drains', async () => {
  const log = process.env['LOG'] ? console : silent
  const events = Number(process.env['EVENTS'] ?? 200)
  const per = Number(process.env['PER'] ?? 1)
  let done = 0
  const host = {
    handle: async (_: unknown, __: unknown) => { done++; return { status: 'done' as const } },
    handlersOf: () => ['a'], handlers: (() => { const h = [{ name: 'a' }]; return () => h })(), parse: () => { throw new Error() }, logger: { ...log, error: console.error, warn: console.warn }, observe() {}, measured: (step: string, ms: number) => { const m = (sums[step] ??= [0, 0]); m[0]++; m[1] += ms },
  } as never
  const concurrency = 16
  const options = { given: pool, config: { connectionString: server.url }, schema: 's', concurrency, leaseMs: 30_000, ttlMs: 86_400_000, timeoutMs: 2_000, listen: true, handles: true }
  const database = new PostgresDatabase(host, options)
  let worker: SqlWorker
  database.open(async () => {})
  await database.ready()
  const intake = new Intake({ database, host, timeoutMs: 60_000, stored: () => worker?.wake() })
  const accept = (n: number) => intake.add(newEventOf(database, { event: { type: 'encoding.finished', key: `k${n}`, mediaId: `m${Math.floor(n / per)}`, qualities: [], issues: [], payload: {} } as never, receivedAt: new Date() }, ['a'], undefined))
  let t = performance.now()
  for (let start = 0; start < events; start += 1000) {
    const answers = await Promise.all(Array.from({ length: Math.min(1000, events - start) }, (_, n) => accept(start + n)))
    expect(new Set(answers)).toEqual(new Set(['accepted']))
  }
  console.log('accepted', Math.round(events / (performance.now() - t) * 1000), '/s')
  expect(await accept(1)).toBe('duplicate')
  worker = new SqlWorker({ database, host, concurrency, leaseMs: 30_000, ttlMs: 86_400_000 })
  t = performance.now()
  await worker.start()
  await expect.poll(() => done, { timeout: 60_000, interval: 5 }).toBe(events)
  console.log('drained', Math.round(events / (performance.now() - t) * 1000), '/s')
  console.log(JSON.stringify(Object.fromEntries(Object.entries(sums).map(([k, [n, ms]]) => [k, { n, avg: ms / n }]))))
  worker.stopStarting()
  await worker.finish(countdown(2_000))
  expect(await worker.release(countdown(2_000))).toEqual([])
  const { rows } = await pool.query('SELECT count(*)::int AS n, count(ended_at)::int AS ended, count(event)::int AS left FROM s.event')
  expect(rows[0]).toEqual({ n: events, ended: events, left: 0 })
  const lanes = await pool.query("SELECT count(*)::int AS n FROM s.lane WHERE owner IS NOT NULL OR ready_at < 'infinity'")
  expect(lanes.rows[0].n).toBe(0)
  await database.close()
})
