import { bullmqInbox } from '../src/inbox/bullmq.ts'
import type { AcceptedEvent } from '../src/inbox/inbox.ts'
import { eventOf } from '../src/testing/contract/handling.ts'
import { RedisServer } from '../test/redis/redis-server.ts'
import { hostOf } from './host.ts'

const callers = 64
const perRound = 30_000
const rounds = 5

/** Accepts events in one process and gives the events per second. Each caller accepts one event at a time. */
async function acceptedPerSecond(accept: (event: AcceptedEvent) => unknown): Promise<number> {
  const events = Array.from({ length: perRound }, () => eventOf(crypto.randomUUID()))
  const caller = async () => {
    for (let event = events.pop(); event !== undefined; event = events.pop()) await accept(event)
  }
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: callers }, caller))
  return perRound / ((performance.now() - startedAt) / 1_000)
}

const server = await RedisServer.start({ settings: { appendfsync: 'everysec' } })
const inbox = bullmqInbox({ connection: server.url, handles: false }).open(hostOf(async () => ({ status: 'done' })))
const rates: number[] = []
for (let round = 0; round <= rounds; round++) rates.push(await acceptedPerSecond((event) => inbox.accept(event)))
await inbox.close()
await server.remove()
// The first round warms up.
const measured = rates.slice(1).toSorted((a, b) => a - b)
const per = (rate?: number) => `${Math.round(rate ?? 0).toLocaleString('en')}/s`
console.log(
  `bullmqInbox, appendfsync everysec, ${callers} callers: ${per(measured[rounds >> 1])} accepted (median of ${rounds}; ${per(measured[0])} to ${per(measured.at(-1))})`,
)
