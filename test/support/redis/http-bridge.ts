import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { Redis } from 'ioredis'
import type { RedisServer } from './redis-server.ts'

type Command = [name: string, ...parameters: (string | number)[]]
type Reply = { result: unknown } | { error: string }

/** A server that speaks the REST protocol of Upstash in front of a Redis. */
export interface HttpBridge {
  readonly url: string
  readonly token: string
  /** Stops to answer, and ends its connections. */
  stop(): Promise<void>
}

/** Starts a bridge in front of a Redis, on 127.0.0.1 and a free port. */
export async function startHttpBridge({ port }: Pick<RedisServer, 'port'>): Promise<HttpBridge> {
  const token = crypto.randomUUID()
  const redis = new Redis(port, { maxRetriesPerRequest: 0 }).on('error', () => {})
  const server = createServer(answering(redis, token))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token,
    async stop() {
      redis.disconnect()
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

const answering =
  (redis: Redis, token: string): RequestListener =>
  async (request, response) => {
    if (request.headers.authorization !== `Bearer ${token}`) return write(response, 401, { error: 'Unauthorized' })
    const sent = (await json(request)) as Command | Command[]
    const encode = encoderOf(request)
    if (request.url === '/pipeline') {
      const replies = await Promise.all((sent as Command[]).map((command) => replyTo(redis, command, encode)))
      return write(response, 200, replies)
    }
    const reply = await replyTo(redis, sent as Command, encode)
    write(response, 'error' in reply ? 400 : 200, reply)
  }

async function replyTo(
  redis: Redis,
  [name, ...parameters]: Command,
  encode: (value: unknown) => unknown,
): Promise<Reply> {
  try {
    return { result: encode(await redis.call(name, ...parameters)) }
  } catch (error) {
    return { error: (error as Error).message }
  }
}

/** The client asks for strings in base64, so that they hold any bytes. */
function encoderOf({ headers }: IncomingMessage): (value: unknown) => unknown {
  if (headers['upstash-encoding'] !== 'base64') return (value) => value
  return (value) => (typeof value === 'string' && value !== 'OK' ? Buffer.from(value).toString('base64') : value)
}

const write = (response: ServerResponse, status: number, body: object) =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
