import { RedisServer } from '../test/support/redis/redis-server.ts'
import { withProcesses } from './postgres/bench.ts'
import { machine, number, printTable, spread } from './report.ts'

const rounds = 5
const seconds = 5

const redis = await RedisServer.start({ settings: { appendfsync: 'everysec' } })
const accepted: number[] = []
const handled: number[] = []
try {
  await withProcesses(1, async ([process]) => {
    await process?.open('bullmqInbox', { postgres: '', redis: redis.url, name: 'bench', handles: true, writes: false })
    // The first round warms up the compiler.
    for (let round = 0; round <= rounds; round++) {
      const load = await process?.load(seconds, { waits: true })
      if (round === 0 || load === undefined) continue
      accepted.push(load.acceptedPerSecond)
      handled.push(load.handledPerSecond)
    }
  })
} finally {
  await redis.remove()
}

const row = (name: string, rates: readonly number[]) => {
  const { median, min, max } = spread(rates)
  return [name, `${number(median)} (${number(min)} to ${number(max)})`]
}
console.log(machine())
printTable(
  'The BullMQ inbox, `appendfsync everysec`, 64 callers',
  ['', 'events/s (spread)'],
  [row('accepted, while they are handled', accepted), row('accepted and handled', handled)],
)
