import { describe, expect, onTestFinished, test } from 'vitest'
import { encodePayload, type Payload, samplePayload } from '../../src/testing/index.ts'
import { findRuntime } from '../support/find-runtime.ts'
import { postJson } from '../support/post-json.ts'
import { deployQueueWorker } from './cloudflare/deployment.ts'

const workerd = findRuntime('workerd')

async function deploy() {
  const worker = await deployQueueWorker(workerd as string)
  onTestFinished(() => worker.stop())
  const post = async (fields: Partial<Payload>) => {
    const body = encodePayload(samplePayload('encoding.finished', { qualities: '720p', ...fields }))
    return (await postJson(worker.url, body)).status
  }
  return { ...worker, post }
}

const lineOf = (media: string) => `encoding.finished ${media} 720p`

describe.skipIf(workerd === undefined)('Cloudflare Queues in workerd', () => {
  test('hand each event over to the consumer once, also one that fails at first or comes twice', async () => {
    const { post, handled } = await deploy()
    const media = Array.from({ length: 10 }, (_, number) => `media-${number}`)
    const posts = media.flatMap((media_id, number) => {
      const fields = { media_id, ...(number === 0 && { title: 'fails once' }) }
      return number < 5 ? [post(fields), post(fields)] : [post(fields)]
    })
    expect(await Promise.all(posts)).toEqual(posts.map(() => 200))
    await expect.poll(async () => (await handled()).length).toBe(10)
    expect((await handled()).toSorted()).toEqual(media.map(lineOf))
  })

  test('move an event to the dead-letter queue after as many deliveries as attempts', async () => {
    const { post, handled } = await deploy()
    expect(await post({ media_id: 'a-film', title: 'fails' })).toBe(200)
    await expect.poll(handled).toEqual(['dead a-film'])
  })

  test('lose no event when workerd is killed in the middle, once it was acknowledged', async () => {
    const { post, handled, kill } = await deploy()
    const media = Array.from({ length: 30 }, (_, number) => `media-${number}`)
    const acknowledged = new Set<string>()
    const posts = media.map(async (media_id) => {
      if ((await post({ media_id }).catch(() => 0)) === 200) acknowledged.add(lineOf(media_id))
    })
    await expect.poll(handled, { interval: 1 }).not.toEqual([])
    await kill()
    await Promise.all(posts)
    expect(acknowledged.size).toBeGreaterThan(0)
    await expect.poll(handled).toEqual(expect.arrayContaining([...acknowledged]))
  })
})
