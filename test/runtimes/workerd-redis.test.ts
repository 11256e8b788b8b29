import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { defineStore, WebhookError, type WebhookErrorCode } from '../../src/index.ts'
import { type StoreSubject, storeContract } from '../../src/testing/store-contract.ts'
import { findRuntime } from '../support/find-runtime.ts'
import { postJson } from '../support/post-json.ts'
import type { Program } from '../support/program.ts'
import { findRedis } from '../support/redis/find-redis.ts'
import { type HttpBridge, startHttpBridge } from '../support/redis/http-bridge.ts'
import { RedisServer } from '../support/redis/redis-server.ts'
import { startWorkerd } from './start-workerd.ts'

const workerd = findRuntime('workerd')

describe.skipIf(workerd === undefined || !findRedis())('redisStore with @upstash/redis, in workerd', () => {
  let server: RedisServer
  let bridge: HttpBridge
  let isolates: Program[]
  beforeAll(async () => {
    server = await RedisServer.start()
    bridge = await startHttpBridge(server)
    isolates = await Promise.all(['first', 'second'].map(startIsolate))
  })
  afterAll(async () => {
    for (const isolate of isolates ?? []) await isolate.stop()
    await bridge?.stop()
    await server?.remove()
  })

  async function startIsolate(name: string): Promise<Program> {
    const folder = join(inject('userFolder'), `with-redis-${name}`)
    await cp(fileURLToPath(new URL('.', import.meta.url)), folder, { recursive: true })
    const variables = { URL: bridge.url, TOKEN: bridge.token }
    return startWorkerd(workerd as string, folder, 'worker-with-redis.js', variables)
  }

  const originOf = (isolate: Program | undefined) => `http://127.0.0.1:${isolate?.captured}`

  /** A step that runs in the first isolate. */
  const inIsolate =
    <Answer>(prefix: string, name: string) =>
    async (...parameters: unknown[]): Promise<Answer> => {
      const body = JSON.stringify({ prefix, name, parameters })
      const response = await fetch(`${originOf(isolates[0])}/step`, { method: 'POST', body })
      const { answer, code, message } = (await response.json()) as { answer: Answer; code: string; message: string }
      if (!response.ok) throw new WebhookError(code as WebhookErrorCode, message)
      return answer
    }

  let subjects = 0
  async function subject(): Promise<StoreSubject> {
    const prefix = `subject-${++subjects}:`
    const admin = new Redis(server.port)
    return {
      store: defineStore({
        claim: inIsolate(prefix, 'claim'),
        renew: inIsolate(prefix, 'renew'),
        complete: inIsolate(prefix, 'complete'),
        release: inIsolate(prefix, 'release'),
      }),
      async advance(ms) {
        for (const key of await admin.keys(`${prefix}*`)) await admin.pexpire(key, (await admin.pttl(key)) - ms)
      },
      breakConnection: async () => server.pause(),
      async close() {
        server.resume()
        admin.disconnect()
      },
    }
  }

  storeContract(subject, { test, expect })

  test('two isolates handle each event once, in either of which a duplicate arrives', async () => {
    const ids = Array.from({ length: 20 }, (_, i) => `media ${i}`)
    const send = (isolate: Program, media_id: string) =>
      postJson(`${originOf(isolate)}/webhook`, { type: 'encoding.finished', media_id })
    const sent = ids.flatMap((id) => isolates.flatMap((isolate) => [send(isolate, id), send(isolate, id)]))
    const answers = await Promise.all(sent)
    // 503: the other isolate has claimed the event, and may not have acknowledged it yet.
    expect(answers.map(({ status }) => status).filter((status) => status !== 200 && status !== 503)).toEqual([])
    const handled = async () => {
      const lists = await Promise.all(isolates.map(async (each) => (await fetch(originOf(each))).json()))
      return (lists as string[][]).flat().toSorted()
    }
    await expect.poll(handled).toEqual(ids.toSorted())
  })
})
