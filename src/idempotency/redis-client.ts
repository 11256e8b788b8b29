import { WebhookError } from '../errors.ts'
import { requestsEndWork } from '../internal/requests.ts'
import { type ReachRedis, redisReach, redisReachOverHttp } from '../internal/storage/reach-redis.ts'

/** What is used of an ioredis client, single server or cluster. */
export interface IoredisClient {
  /** `ready` once commands can be sent. */
  readonly status: string
  eval(script: string, numberOfKeys: number, ...keysAndArguments: string[]): Promise<unknown>
}

/** What is used of a node-redis client, single server or cluster. */
export interface NodeRedisClient {
  /** `true` once commands can be sent. */
  readonly isReady: boolean
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
}

/** What is used of a client that speaks HTTP, such as `Redis` of `@upstash/redis`. */
export interface HttpRedisClient {
  eval(script: string, keys: string[], parameters: string[]): Promise<unknown>
}

/** Minimum time between reconnections (ms). The server may stay a replica for a while. */
const reconnectMs = 250

type SocketClient = IoredisClient | NodeRedisClient

/** A client that the application has connected, unless it speaks HTTP. The store never closes it. */
export type RedisClient = SocketClient | HttpRedisClient

/**
 * Runs a script on one key, so a cluster can route it. May run twice if an answer is lost.
 * @param late called with an answer that arrives after the time limit
 */
export type RunScript = (
  script: string,
  key: string,
  parameters: readonly string[],
  late?: (answer: unknown) => void,
) => Promise<unknown>

/** Hides the kind of client. Adds the wait for a connection and the time limit of {@link redisReach}. */
export function scriptRunner(client: RedisClient, timeoutMs: number): RunScript {
  if (typeof client?.eval !== 'function') {
    throw invalidClient('client must be an ioredis, node-redis or @upstash/redis client')
  }
  if (!('status' in client || 'isReady' in client)) {
    const reach = redisReachOverHttp(timeoutMs)
    return (script, key, parameters, late) => reach(() => client.eval(script, [key], [...parameters]), late)
  }
  if (requestsEndWork) {
    const reason = 'whose connections end with the request that opened them'
    throw invalidClient(`on Workers, client can't be ioredis or node-redis, ${reason}: use @upstash/redis`)
  }
  const reach = makeReach(client, timeoutMs)
  if ('status' in client)
    return (script, key, parameters, late) => reach(() => client.eval(script, 1, key, ...parameters), late)
  return (script, key, parameters, late) =>
    reach(() => client.eval(script, { keys: [key], arguments: [...parameters] }), late)
}

const invalidClient = (message: string) => new WebhookError('invalid_option', `redisStore: ${message}`)

function makeReach(client: SocketClient, timeoutMs: number): ReachRedis {
  const isReady =
    'status' in client
      ? // A lazy client stays in `wait` until its first command.
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

/** Forces a reconnect: after a failover the server may be a replica now. Cluster clients follow MOVED by themselves. */
function leaveServer(client: object): void {
  const { isCluster, disconnect } = client as { isCluster?: boolean; disconnect?(reconnect: boolean): void }
  if ('status' in client) {
    if (isCluster !== true) disconnect?.call(client, true)
    return
  }
  const { sendCommand, slots } = client as { sendCommand?(command: string[]): Promise<unknown>; slots?: unknown }
  // node-redis has no reconnect call, but reconnects when the server ends the connection.
  if (slots === undefined) void sendCommand?.call(client, ['QUIT']).catch(() => {})
}
