import { text } from 'node:stream/consumers'
import { describe } from 'vitest'
import { type RunningWorker, WorkerOnDisk } from '../inbox/durable-object/workerd.ts'
import { findRuntime } from '../support/find-runtime.ts'
import { mountListener } from '../support/mounts.ts'
import { findRedis } from '../support/redis/find-redis.ts'
import { startHttpBridge } from '../support/redis/http-bridge.ts'
import { RedisServer } from '../support/redis/redis-server.ts'
import { startFront } from './front.ts'
import { type Deployment, provePlatform } from './platform.suite.ts'

const binary = findRuntime('workerd')

/**
 * Deploys a worker with a memory inbox. Its handlers report to a server of the test. A restart deploys another version, as
 * Cloudflare does: from then on, it gets the requests. Those of the old version continue to their end.
 */
async function onWorkerd(variables: Record<string, string>): Promise<Deployment> {
  const handled: string[] = []
  const recorder = await mountListener(async (request, response) => {
    handled.push(await text(request))
    response.end()
  })
  const disk = await WorkerOnDisk.make(binary as string, {
    entry: new URL('programs/worker-memory.ts', import.meta.url),
    classes: [],
  })
  const versions: RunningWorker[] = []
  const deploy = async () => {
    const version = await disk.start({ ...variables, RECORDER: recorder.url })
    versions.push(version)
    const [origin] = await version.origins()
    return origin as string
  }
  const front = await startFront(await deploy())
  return {
    url: front.url,
    handled: async () => handled,
    restart: async () => front.lead(await deploy()),
    async stop() {
      await front.close()
      for (const version of versions) await version.stop()
      await disk.remove()
      await recorder.close()
    },
  }
}

const alone = { REDIS_URL: '', REDIS_TOKEN: '' }

async function withRedis(): Promise<Deployment> {
  const server = await RedisServer.start()
  const bridge = await startHttpBridge(server)
  const deployment = await onWorkerd({ REDIS_URL: bridge.url, REDIS_TOKEN: bridge.token })
  return {
    ...deployment,
    async stop() {
      await deployment.stop()
      await bridge.stop()
      await server.remove()
    },
  }
}

describe.skipIf(binary === undefined)('on workerd', () => {
  provePlatform('cloudflare memory', () => onWorkerd(alone))

  describe.skipIf(!findRedis())('with a shared store', () => provePlatform('cloudflare memory and redis', withRedis))
})
