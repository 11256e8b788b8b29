import { expect, onTestFinished, test } from 'vitest'
import { WorkerOnDisk } from '../../inbox/durable-object/workerd.ts'
import { findRuntime } from '../../support/find-runtime.ts'
import { mountListener } from '../../support/mounts.ts'
import { postJson } from '../../support/post-json.ts'

const binary = findRuntime('workerd')

test.skipIf(binary === undefined)('isolates that share a store in Durable Objects handle an event once', async () => {
  const handled: string[] = []
  const listener = await mountListener(async (request, response) => {
    let mediaId = ''
    for await (const chunk of request) mediaId += chunk
    handled.push(mediaId)
    response.end()
  })
  onTestFinished(() => listener.close())
  const disk = await WorkerOnDisk.make(binary as string, {
    entry: new URL('with-memory-inbox.ts', import.meta.url),
    classes: [{ binding: 'KEYS', className: 'StoreObject' }],
    isolates: 3,
  })
  onTestFinished(() => disk.remove())
  const worker = await disk.start({ HANDLED: listener.url })
  onTestFinished(() => worker.stop().then(() => {}))
  const origins = await worker.origins()
  const deliver = async (mediaId: string, index: number) => {
    const payload = { type: 'encoding.finished', media_id: mediaId }
    return (await postJson(origins[index % 3] as string, payload)).status
  }

  const media = Array.from({ length: 20 }, (_, index) => `media ${index}`)
  const atOnce = media.flatMap((mediaId) => [0, 1, 2].map((isolate) => deliver(mediaId, isolate)))
  // An isolate that is not the one which has claimed the event cannot know that it will be safe: 503.
  for (const status of await Promise.all(atOnce)) expect([200, 503]).toContain(status)
  await expect.poll(() => handled.toSorted()).toEqual(media.toSorted())
  const again = () => Promise.all(media.flatMap((mediaId) => [0, 1, 2].map((isolate) => deliver(mediaId, isolate))))
  await expect.poll(async () => new Set(await again())).toEqual(new Set([200]))
  expect(handled.toSorted()).toEqual(media.toSorted())
})
