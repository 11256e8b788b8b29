import { WebhookError } from '../errors.ts'
import { redisReach } from '../internal/reach-redis.ts'

/** The part of an ioredis client that is used, of one server or of a cluster. */
export interface IoredisClient {
  readonly status: string
  once(event: 'ready', listener: () => void): unknown
  eval(script: string, numberOfKeys: number, ...keysAndArguments: string[]): Promise<unknown>
}

/** The part of a node-redis client that is used, of one server or of a cluster. */
export interface NodeRedisClient {
  readonly isReady: boolean
  once(event: 'ready', listener: () => void): unknown
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
}

/** A connected client of the user's. The store never closes it. */
export type RedisClient = IoredisClient | NodeRedisClient

/** Runs a script on one key, by which a cluster finds the node. */
export type RunScript = (script: string, key: string, ...parameters: string[]) => Promise<unknown>

/**
 * Makes a function that runs scripts on either kind of client, within {@link redisReach}.
 * @throws WebhookError `invalid_option`
 */
export function scriptRunner(client: RedisClient, timeoutMs: number): RunScript {
  if (typeof client?.eval !== 'function' || !('status' in client || 'isReady' in client))
    throw new WebhookError('invalid_option', 'redisStore: client has to be a client of ioredis or of node-redis')
  if ('status' in client) {
    // One that connects lazily waits for its first command.
    const reach = redisReach(client, () => client.status === 'ready' || client.status === 'wait', timeoutMs)
    return (script, key, ...parameters) => reach(() => client.eval(script, 1, key, ...parameters))
  }
  const reach = redisReach(client, () => client.isReady, timeoutMs)
  return (script, key, ...parameters) => reach(() => client.eval(script, { keys: [key], arguments: parameters }))
}
