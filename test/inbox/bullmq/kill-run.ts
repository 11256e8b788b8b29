import { setTimeout as sleep } from 'node:timers/promises'
import { Queue } from 'bullmq'
import { Redis } from 'ioredis'
import type { RedisServer } from '../../redis/redis-server.ts'
import { startLoad } from './load.ts'
import { ReceiverProcess, type ReceiverTask } from './receiver-process.ts'

export interface KillReport {
  readonly kills: number
  readonly acknowledged: number
  readonly rejected: number
  /** Events that were acknowledged and never handled. */
  readonly lost: number
  readonly handled: number
  /** Runs of the handler beyond the first of an event. */
  readonly handledAgain: number
  readonly deadLetters: number
}

/**
 * Runs three receivers that share a queue and accept at full speed; two of them handle. One after another is killed at a
 * random moment and started again.
 */
export async function killRun(server: RedisServer, kills: number): Promise<KillReport> {
  const queue = `kill run of ${kills}`
  const handles: ReceiverTask = { redis: server.url, queue, handling: 'effects', leaseMs: 1_000 }
  const tasks: ReceiverTask[] = [handles, handles, { ...handles, handling: 'none' }]
  const receivers = await Promise.all(tasks.map((task) => ReceiverProcess.start(task)))
  const load = startLoad(() => receivers.filter(({ hasEnded }) => !hasEnded).map(({ url }) => url))
  try {
    for (let kill = 0; kill < kills; kill++) {
      const victim = kill % receivers.length
      await sleep(50 + Math.random() * 400)
      await receivers[victim]?.kill()
      receivers[victim] = await ReceiverProcess.start(tasks[victim] as ReceiverTask)
    }
    await load.stop()
    return { kills, rejected: load.rejected(), ...(await tally(server, queue, load.acknowledged)) }
  } finally {
    await load.stop()
    for (const receiver of receivers) await receiver.kill()
  }
}

/** Waits until everything was handled, and compares. */
async function tally(server: RedisServer, queue: string, acknowledged: ReadonlySet<string>) {
  const redis = new Redis(server.port, { maxRetriesPerRequest: null })
  const jobs = new Queue(queue, { connection: redis })
  while ((await jobs.getJobCountByTypes('wait', 'active', 'delayed')) > 0) await sleep(50)
  const runs = await redis.hgetall('effects')
  const deadLetters = await jobs.getFailedCount()
  await jobs.close()
  redis.disconnect()
  const counts = Object.values(runs).map(Number)
  return {
    acknowledged: acknowledged.size,
    lost: [...acknowledged].filter((key) => runs[key] === undefined).length,
    handled: counts.length,
    handledAgain: counts.reduce((sum, count) => sum + count - 1, 0),
    deadLetters,
  }
}
