import { WebhookError } from '../errors.ts'
import { requestsEndWork } from '../internal/requests.ts'
import { type ReachRedis, redisReach, redisReachOverHttp } from '../storage/reach-redis.ts'

/** The part of an ioredis client that is used, of one server or of a cluster. */
export interface IoredisClient {
  /** `ready` once commands can be sent. */
  readonly status: string
  /** Runs a Lua script. */
  eval(script: string, numberOfKeys: number, ...keysAndArguments: string[]): Promise<unknown>
}

/** The part of a node-redis client that is used, of one server or of a cluster. */
export interface NodeRedisClient {
  /** `true` once commands can be sent. */
  readonly isReady: boolean
  /** Runs a Lua script. */
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
}

/** The part of a client that sends each command over HTTP, such as `Redis` of `@upstash/redis`. */
export interface HttpRedisClient {
  /** Runs a Lua script. */
  eval(script: string, keys: string[], parameters: string[]): Promise<unknown>
}

/** Minimum time between two reconnections, in ms: a server can stay a replica. */
const reconnectMs = 250

/** A client with a connection of its own. */
type SocketClient = IoredisClient | NodeRedisClient

/** A client of the user's, which is connected if it has a connection. The store never closes it. */
export type RedisClient = SocketClient | HttpRedisClient

/**
 * Runs a script on one key, by which a cluster finds the node. The script can run twice, when its answer is lost.
 * @param late called with an answer that comes after the time limit
 */
export type RunScript = (
  script: string,
  key: string,
  parameters: readonly string[],
  late?: (answer: unknown) => void,
) => Promise<unknown>

/**
 * Makes a function that runs scripts on each kind of client, within {@link redisReach}.
 * @throws WebhookError `invalid_option`
 */
export function scriptRunner(client: RedisClient, timeoutMs: number): RunScript {
  if (typeof client?.eval !== 'function') {
    throw invalidClient('client has to be a client of ioredis, node-redis or @upstash/redis')
  }
  if (!('status' in client || 'isReady' in client)) {
    const reach = redisReachOverHttp(timeoutMs)
    return (script, key, parameters, late) => reach(() => client.eval(script, [key], [...parameters]), late)
  }
  if (requestsEndWork) {
    const reason = 'its connection ends with the request that opened it'
    throw invalidClient(`on Workers client cannot be one of ioredis or node-redis, since ${reason}: use @upstash/redis`)
  }
  const reach = reachOf(client, timeoutMs)
  if ('status' in client)
    return (script, key, parameters, late) => reach(() => client.eval(script, 1, key, ...parameters), late)
  return (script, key, parameters, late) =>
    reach(() => client.eval(script, { keys: [key], arguments: [...parameters] }), late)
}

const invalidClient = (message: string) => new WebhookError('invalid_option', `redisStore: ${message}`)

function reachOf(client: SocketClient, timeoutMs: number): ReachRedis {
  const isReady =
    'status' in client
      ? // One that connects lazily waits for its first command.
        () => client.status === 'ready' || client.status === 'wait'
      : () => client.isReady
  let reconnectedAt = Number.NEGATIVE_INFINITY
  const reconnect = () => {
    const now = performance.now()
    if (now - reconnectedAt < reconnectMs) return
    reconnectedAt = now
    leaveServer(client)
  }
  return redisReach({ isReady, timeoutMs, reconnect })
}

/**
 * Makes the client connect again: after a failover its connection can lead to a server that is a replica now. A cluster's
 * client is led to the new master by the servers' answers.
 */
function leaveServer(client: object): void {
  const { isCluster, disconnect } = client as { isCluster?: boolean; disconnect?(reconnect: boolean): void }
  if ('status' in client) {
    if (isCluster !== true) disconnect?.call(client, true)
    return
  }
  const { sendCommand, slots } = client as { sendCommand?(command: string[]): Promise<unknown>; slots?: unknown }
  // node-redis connects again by itself when the server ends the connection, and has no other way to be told.
  if (slots === undefined) void sendCommand?.call(client, ['QUIT']).catch(() => {})
}
