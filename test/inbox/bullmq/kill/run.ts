import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openInboxQueue } from '../../../../src/inbox/bullmq.ts'
import type { RedisServer } from '../../../support/redis/redis-server.ts'
import { seeded } from '../../../support/seeded.ts'
import { handlers } from '../../kill/child.ts'
import { judge, type KillReport, type Moment } from '../../kill/judge.ts'
import { Killed } from '../../kill/killed.ts'
import { readRuns } from '../../kill/runs.ts'
import { Sender } from '../../kill/sender.ts'
import { bundled } from '../../postgres/forked.ts'
import type { QueueTask } from './child.ts'

/** So long that a living process renews it even on a busy machine: a second run without a kill is a fault. */
const leaseMs = 5_000

/**
 * Runs three receivers that share a queue and accept at full speed; two of them handle. One after another is killed at a
 * random moment and started again.
 */
export async function killRun(server: RedisServer, kills: number, seed: number): Promise<KillReport> {
  const random = seeded(seed)
  const queue = `kill run ${seed}`
  const folder = await mkdtemp(join(tmpdir(), 'media-webhooks-kill-run-'))
  const program = await bundled(new URL('./child.ts', import.meta.url), folder)
  let started = 0
  const start = (place: number) => {
    const name = `process-${started++}`
    const task: QueueTask = {
      ...{ name, folder, seed: Math.floor(random() * 1e9) },
      ...{ connection: server.url, queue, handles: place < 2, leaseMs },
    }
    return Killed.start(program, task)
  }
  const receivers = await Promise.all([0, 1, 2].map(start))
  const sender = new Sender({ urls: () => receivers.flatMap(({ urls }) => urls), random, connections: 16 })
  const killed: Moment[] = []
  try {
    for (let kill = 0; kill < kills; kill++) {
      const place = kill % receivers.length
      await sender.acknowledgesMore(random() < 0.1 ? 0 : 20)
      await sleep(random() * 400)
      killed.push(await (receivers[place] as Killed).kill())
      receivers[place] = await start(place)
    }
    await sender.stop()
    await (receivers[0] as Killed).settled()
    const { acknowledged } = sender
    const deadLetters = await countDeadLetters(server, queue)
    return judge({ acknowledged, handlers, runs: readRuns(folder), kills: killed, deadLetters })
  } finally {
    await sender.stop()
    await Promise.all(receivers.map((receiver) => receiver.end()))
    await rm(folder, { recursive: true })
  }
}

async function countDeadLetters({ url }: RedisServer, queue: string): Promise<number> {
  const opened = await openInboxQueue({ connection: url, queue })
  try {
    return (await opened.stats()).deadLetters
  } finally {
    await opened.close()
  }
}
