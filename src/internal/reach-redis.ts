import { WebhookError } from '../errors.ts'
import { within } from './timers.ts'

/** Runs one step that waits for Redis. */
export type ReachRedis = <T>(step: () => Promise<T>) => Promise<T>

/** A client that emits an event when it has connected. */
interface Connecting {
  once(event: 'ready', listener: () => void): unknown
}

/** The interval at which a client that connects for the first time is checked, in ms. */
const lookMs = 20

/**
 * Limits how long a step may wait for Redis: clients queue commands for as long as they are disconnected. A step waits up
 * to `timeoutMs` for the first connection; after a disconnection it fails at once. Steps reject with a WebhookError
 * `unavailable`.
 */
export function redisReach(client: Connecting, isReady: () => boolean, timeoutMs: number): ReachRedis {
  let wasReady = false
  client.once('ready', () => {
    wasReady = true
  })

  const ready = async (deadline: number) => {
    while (!isReady()) {
      if (wasReady || performance.now() > deadline) throw new Error('there is no connection to Redis')
      await new Promise((resolve) => setTimeout(resolve, lookMs))
    }
    wasReady = true
  }

  return async (step) => {
    try {
      if (!wasReady || !isReady()) await ready(performance.now() + timeoutMs)
      return await within(timeoutMs, step(), () => {
        throw new Error(`no answer from Redis within ${timeoutMs} ms`)
      })
    } catch (error) {
      throw new WebhookError('unavailable', 'Redis gave no answer, or an error', { cause: error })
    }
  }
}
