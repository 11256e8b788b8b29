import { describe } from 'vitest'
import { WorkerOnDisk } from '../inbox/durable-object/workerd.ts'
import { findRuntime } from '../support/find-runtime.ts'
import { freePort } from '../support/free-port.ts'
import { type Deployment, provePlatform } from './platform.suite.ts'

const binary = findRuntime('workerd')

/** Deploys a worker with Durable Objects. A restart sends workerd SIGTERM. */
async function onWorkerd(): Promise<Deployment> {
  const disk = await WorkerOnDisk.make(binary as string, {
    entry: new URL('programs/worker.ts', import.meta.url),
    classes: [{ binding: 'MEDIA_INBOX', className: 'MediaInbox' }],
  })
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  let worker = await disk.start({}, port)
  return {
    url: `${url}/webhooks/media`,
    handled: async () => (await (await fetch(`${url}/handled`)).json()) as string[],
    async restart() {
      await worker.stop('SIGTERM')
      worker = await disk.start({}, port)
    },
    async stop() {
      await worker.stop()
      await disk.remove()
    },
  }
}

describe.skipIf(binary === undefined)('on workerd', () => provePlatform('cloudflare durable-object', onWorkerd))
