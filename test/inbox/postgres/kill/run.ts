import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PostgresServer } from '../../../support/postgres/postgres-server.ts'
import { seeded } from '../../../support/seeded.ts'
import { bundled } from '../forked.ts'
import { Fleet } from './fleet.ts'
import { settle } from './settle.ts'

export interface KillRunOptions {
  readonly kills: number
  /** The seed of the random numbers of the run, and of its processes. */
  readonly seed: number
  /** `false`: handlers write with the pool, beside the inbox. */
  readonly transaction: boolean
}

export type KillReport = Awaited<ReturnType<typeof killRun>>

const size = 3
const leaseMs = 1_000
/** Postgres is killed once per so many kills. */
const outageEvery = 25

/**
 * Runs three processes that accept and handle on one database. One after another is killed at a random moment and
 * replaced. Some are paused for longer than their lease. Postgres is killed and started again in between.
 */
export async function killRun(server: PostgresServer, { kills, seed, transaction }: KillRunOptions) {
  const random = seeded(seed)
  const folder = await mkdtemp(join(tmpdir(), 'media-webhooks-kill-run-'))
  // Only the inbox prevents a second row.
  await server.query('CREATE TABLE handled (handler text, key text, process text)')
  const program = await bundled(new URL('./child.ts', import.meta.url), folder)
  const fleet = new Fleet({ program, url: server.url, folder, leaseMs, transaction }, size, random)
  let outages = 0
  let outage: Promise<void> = Promise.resolve()
  try {
    for (let kill = 1; kill <= kills; kill++) {
      await fleet.check()
      if (kill % outageEvery === 0) {
        await outage
        outages++
        outage = killServer(server, random() * 1_500)
      }
      const victim = kill % size
      if (random() < 0.3) await fleet.pause((kill + 1) % size, leaseMs * (1.2 + random()))
      // A paused process is killed less often, so that most of them wake up.
      const [pick, atStart, afterMs] = [random(), random() < 0.1, random() * 400]
      const place = fleet.isPaused(victim) && pick < 0.8 ? (victim + 1) % size : victim
      await fleet.kill(place, atStart, afterMs)
    }
    await outage
    const { pauses, cutOff, cutOffInTransaction } = fleet
    return { kills, pauses, outages, cutOff, cutOffInTransaction, ...(await settle(server, fleet, folder)) }
  } finally {
    await outage
    await fleet.end()
    await rm(folder, { recursive: true })
  }
}

async function killServer(server: PostgresServer, downMs: number): Promise<void> {
  await server.stop('SIGKILL')
  await sleep(downMs)
  await server.restart()
}
