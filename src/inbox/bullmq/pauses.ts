import type { PauseStorage } from '../operations/pauses.ts'
import type { Pause } from '../reading.ts'
import type { EventQueue } from './queue.ts'

/** Pauses in Redis. BullMQ pauses the queue itself. A hash has the paused handlers, and who paused the queue. */
export function pauseStorage(queue: EventQueue): PauseStorage {
  const { client } = queue
  const key = queue.own.of('pauses')
  /** When this process first saw the queue paused by another program, such as Bull Board. */
  let seenAt: Date | undefined
  return {
    list: () =>
      queue.reach(async (jobs) => {
        const [isPaused, { '': own, ...handlers }] = await Promise.all([jobs.isPaused(), client.hgetall(key)])
        const pauses = Object.entries(handlers).map(([handler, pause]) => ({ handler, ...parsed(pause) }))
        seenAt = isPaused ? (seenAt ?? new Date()) : undefined
        if (seenAt === undefined) return pauses
        return [own === undefined ? { since: seenAt } : parsed(own), ...pauses]
      }),
    add: ({ handler = '', ...pause }) =>
      queue.reach(async (jobs) => {
        const text = JSON.stringify(pause)
        if (handler !== '') return (await client.hsetnx(key, handler, text)) === 1
        if (await jobs.isPaused()) return false
        await client.hset(key, handler, text)
        await jobs.pause()
        return true
      }),
    remove: (handler = '') =>
      queue.reach(async (jobs) => {
        const isRemoved = (await client.hdel(key, handler)) === 1
        if (handler !== '') return isRemoved
        if (!(await jobs.isPaused())) return false
        await jobs.resume()
        return true
      }),
  }
}

function parsed(text: string): Pause {
  const { since, ...pause } = JSON.parse(text)
  return { ...pause, since: new Date(since) }
}
