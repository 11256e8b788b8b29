import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { SQSBatchResponse } from 'aws-lambda'
import { build } from 'esbuild'
import { expect, inject, onTestFinished, test, vi } from 'vitest'
import { httpApiEvent } from '../adapters/lambda-events.ts'
import { deployQueueWorker } from '../queues/cloudflare/deployment.ts'
import { EventSource } from '../queues/sqs/event-source.ts'
import { SqsServer } from '../queues/sqs/server.ts'
import { findRuntime } from '../support/find-runtime.ts'
import { postJson } from '../support/post-json.ts'
import { findRedis } from '../support/redis/find-redis.ts'
import { RedisServer } from '../support/redis/redis-server.ts'

const body = '{"type":"encoding.finished","media_id":"a-film","qualities":"360p,720p","status":"done"}'
const folderOf = (example: string) => join(inject('userFolder'), 'examples', example)

const workerd = findRuntime('workerd')

test.skipIf(workerd === undefined)('the example for Cloudflare Queues handles a repeated event once', async () => {
  const worker = await deployQueueWorker(workerd as string, {
    entryPoints: [join(folderOf('cloudflare-queues'), 'worker.ts')],
  })
  onTestFinished(() => worker.stop())
  const post = async (token: string) => (await postJson(`${worker.url}?token=${token}`, body)).status
  expect([await post('a-secret'), await post('a-secret'), await post('a-guess')]).toEqual([200, 200, 401])
  await expect.poll(worker.output).toContain('publish a-film in 360p, 720p')
  expect(worker.output().match(/publish/g)).toHaveLength(1)
})

interface Functions {
  receive(event: unknown): Promise<{ readonly statusCode: number }>
  consume(event: unknown): Promise<SQSBatchResponse>
}

/** Bundles the functions as SAM does, and loads them. */
async function loadFunctions(): Promise<Functions> {
  const folder = folderOf('aws-lambda-sqs')
  const outfile = join(folder, 'bundle', 'functions.cjs')
  await build({
    entryPoints: [join(folder, 'functions.ts')],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    logLevel: 'error',
  })
  return createRequire(import.meta.url)(outfile)
}

test.skipIf(!findRedis())('the example for Lambda handles a repeated event once', async () => {
  const [redis, sqs] = [await RedisServer.start(), await SqsServer.start()]
  const { queue, url } = sqs.create({ name: 'events.fifo', fifo: true, visibilityMs: 1_000 })
  vi.stubEnv('WEBHOOK_TOKEN', 'a-secret')
  vi.stubEnv('QUEUE_URL', url)
  vi.stubEnv('REDIS_URL', redis.url)
  vi.stubEnv('AWS_ENDPOINT_URL_SQS', sqs.endpoint)
  vi.stubEnv('AWS_REGION', 'eu-west-1')
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'a-key')
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'a-secret')
  const { receive, consume } = await loadFunctions()
  const events = new EventSource(queue, consume)
  onTestFinished(async () => {
    vi.unstubAllEnvs()
    await events.stop()
    await Promise.all([sqs.close(), redis.remove()])
  })
  const log = vi.spyOn(console, 'log').mockImplementation(() => {})
  const post = async (token: string) =>
    (await receive(httpApiEvent({ query: `token=${token}`, headers: [['content-type', 'application/json']], body })))
      .statusCode
  expect([await post('a-secret'), await post('a-secret'), await post('a-guess')]).toEqual([200, 200, 401])
  await expect.poll(() => log.mock.calls).toEqual([['publish a-film in 360p, 720p']])
  await expect.poll(() => queue.messages).toEqual([])
})
