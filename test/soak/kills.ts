import { expectingRun as expectOverRedis } from '../inbox/bullmq/kill/expecting-run.ts'
import { killRun as killOverRedis } from '../inbox/bullmq/kill/run.ts'
import { expectingRun as expectOverObjects } from '../inbox/durable-object/kill/expecting-run.ts'
import { killRun as killOverObjects } from '../inbox/durable-object/kill/run.ts'
import { type KillReport, reportText } from '../inbox/kill/judge.ts'
import type { Lives } from '../inbox/kill/lives.ts'
import { faultsOf, postgresText } from '../inbox/postgres/kill/report.ts'
import { killRun as killOverPostgres } from '../inbox/postgres/kill/run.ts'
import { expectingRun as expectOverFile } from '../inbox/sqlite/kill/expecting-run.ts'
import { killRun as killOverFile } from '../inbox/sqlite/kill/run.ts'
import { findRuntime } from '../support/find-runtime.ts'
import { PostgresServer } from '../support/postgres/postgres-server.ts'
import { RedisServer } from '../support/redis/redis-server.ts'
import type { Part } from './part.ts'

/** The reasons for a failure that are printed. */
const maxFaults = 10

/** Kills a receiver again and again, and starts the next one on its file. */
export const sqlite: Part = async ({ kills, seed }) => [
  ...tell('sqliteInbox', await killOverFile(kills, seed), seed),
  ...tellExpected('sqliteInbox', await expectOverFile(kills, seed), seed),
]

/** Kills workerd again and again, and starts it on the storage of the same Durable Objects. */
export const durableObject: Part = async ({ kills, seed }) => {
  const binary = findRuntime('workerd')
  if (binary === undefined) return ['workerd does not run here; run npm ci']
  return [
    ...tell('durableObjectInbox, three isolates', await killOverObjects(binary, kills, seed), seed),
    ...tellExpected('durableObjectInbox, two isolates', await expectOverObjects(binary, kills, seed), seed),
  ]
}

/** Kills receivers that share a queue, and a tenth as often some that expect events. */
export const bullmq: Part = async ({ kills, seed }) => {
  const server = await RedisServer.start()
  try {
    const report = await killOverRedis(server, kills, seed)
    const expecting = await expectOverRedis(server, Math.ceil(kills / 10), seed)
    return [
      ...tell('bullmqInbox, three receivers on one queue', report, seed),
      ...tell('bullmqInbox, three receivers that expect events', expecting, seed),
    ]
  } finally {
    await server.remove()
  }
}

function tell(inbox: string, report: KillReport, seed: number): readonly string[] {
  console.log(`${inbox}, ${reportText(report)} (seed ${seed})`)
  return firstOf(report.faults)
}

interface ExpectingReport {
  readonly begun: number
  readonly reported: readonly string[]
  readonly lives: Lives
}

function tellExpected(inbox: string, { begun, reported, lives }: ExpectingReport, seed: number): readonly string[] {
  console.log(`${inbox}, ${begun} lives began, ${reported.length} were reported as overdue (seed ${seed})`)
  return firstOf(lives.faults(reported))
}

function firstOf(faults: readonly string[]): readonly string[] {
  const more = faults.length - maxFaults
  return [...faults.slice(0, maxFaults), ...(more > 0 ? [`and ${more} more`] : [])]
}

/** Kills and pauses receivers on one database, and kills Postgres. */
export const postgres: Part = async ({ kills, seed, transaction }) => {
  const server = await PostgresServer.start()
  const options = { kills, seed, transaction }
  const report = await killOverPostgres(server, options).finally(() => server.remove())
  console.log(postgresText(report, options))
  for (const line of [...report.examples, ...report.deadLetters.slice(0, 5)]) console.log(line)
  return faultsOf(report, transaction)
}
