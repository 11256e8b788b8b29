import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SQSBatchResponse } from 'aws-lambda'
import { EventSource } from '../../queues/sqs/event-source.ts'
import { SqsServer } from '../../queues/sqs/server.ts'
import { RedisServer } from '../../support/redis/redis-server.ts'
import type { Deployment } from '../platform.suite.ts'
import { functionUrl } from './front.ts'
import { bundleFunction, LambdaFunction } from './lambda-function.ts'

/** Makes the file that handlers write their runs to. */
export function handledFile() {
  const folder = mkdtempSync(join(tmpdir(), 'platform-'))
  const path = join(folder, 'handled')
  return {
    path,
    read: () => (existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : []),
    remove: () => rmSync(folder, { recursive: true }),
  }
}

/** A deployment of two functions, a FIFO queue between them and Redis. */
export interface QueueDeployment extends Deployment {
  /** Kills the sandboxes that are frozen. */
  killFrozen(): Promise<void>
}

/** Deploys a function URL that hands its events over to SQS, and a function that consumes them. */
export async function queueDeployment(): Promise<QueueDeployment> {
  const [redis, sqs, { bundle, remove }] = await Promise.all([
    RedisServer.start(),
    SqsServer.start(),
    bundleFunction('queue'),
  ])
  const handled = handledFile()
  const { queue, url: queueUrl } = sqs.create({ name: 'events.fifo', fifo: true, visibilityMs: 1_000 })
  const env = {
    HANDLED: handled.path,
    QUEUE_URL: queueUrl,
    REDIS_PORT: `${redis.port}`,
    AWS_ENDPOINT_URL_SQS: sqs.endpoint,
    AWS_REGION: 'eu-west-1',
    AWS_ACCESS_KEY_ID: 'a-key',
    AWS_SECRET_ACCESS_KEY: 'a-secret',
  }
  const deploy = async () => {
    const functions = ['receive', 'consume'].map((handler) => new LambdaFunction({ bundle, handler, env }))
    await Promise.all(functions.map((each) => each.warm()))
    return functions as [LambdaFunction, LambdaFunction]
  }
  let functions = await deploy()
  const front = await functionUrl((event) => functions[0].invoke(event))
  const source = new EventSource(queue, (event) => functions[1].invoke(event) as Promise<SQSBatchResponse>)
  return {
    url: front.url,
    handled: async () => handled.read(),
    async restart() {
      const earlier = functions
      functions = await deploy()
      await Promise.all(earlier.map((each) => each.shutDown()))
    },
    async killFrozen() {
      await Promise.all(functions.map((each) => each.killFrozen()))
    },
    async stop() {
      await Promise.all([front.close(), source.stop()])
      await Promise.all(functions.map((each) => each.shutDown()))
      await Promise.all([sqs.close(), redis.remove(), remove()])
      handled.remove()
    },
  }
}
