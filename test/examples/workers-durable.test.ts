import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, inject, onTestFinished, test } from 'vitest'
import { WorkerOnDisk } from '../inbox/durable-object/workerd.ts'
import { findRuntime } from '../support/find-runtime.ts'
import { postJson } from '../support/post-json.ts'

const workerd = findRuntime('workerd')
const secret = 'a-secret-of-the-test'

test.skipIf(workerd === undefined)(
  'the example with Durable Objects handles an event once, and knows it after it was killed',
  async () => {
    const disk = await WorkerOnDisk.make(workerd as string, {
      entry: pathToFileURL(join(inject('userFolder'), 'examples/workers-durable/worker.ts')),
      classes: [{ binding: 'MEDIA_INBOX', className: 'MediaInbox' }],
      isInstalled: true,
    })
    let worker = await disk.start({ WEBHOOK_TOKEN: secret })
    onTestFinished(async () => {
      await worker.stop()
      await disk.remove()
    })

    async function deliver(token: string) {
      const [origin] = await worker.origins()
      const payload = { type: 'encoding.finished', media_id: 'a-film', qualities: '360p,720p', status: 'done' }
      const response = await postJson(`${origin}/webhooks/media?token=${token}`, payload)
      return [response.status, ((await response.json()) as { status: string }).status]
    }

    expect(await deliver('a-guess')).toEqual([401, 'error'])
    expect(await deliver(secret)).toEqual([200, 'accepted'])
    expect(await deliver(secret)).toEqual([200, 'duplicate'])
    await expect.poll(() => worker.output).toContain('publish a-film in 360p, 720p')
    expect(worker.output.match(/publish/g)).toHaveLength(1)
    await worker.stop('SIGKILL')
    worker = await disk.start({ WEBHOOK_TOKEN: secret })
    expect(await deliver(secret)).toEqual([200, 'duplicate'])
  },
)
