import { Redis } from 'ioredis'
import { afterAll, beforeAll } from 'vitest'
import { RedisServer } from './redis-server.ts'

/** Starts a server for the tests of a file, and a client that reads it. */
export function redisTests() {
  let server: RedisServer
  let client: Redis
  beforeAll(async () => {
    server = await RedisServer.start()
    client = new Redis(server.port)
  })
  afterAll(async () => {
    client?.disconnect()
    await server?.remove()
  })
  return {
    get server() {
      return server
    },
    get client() {
      return client
    },
  }
}
