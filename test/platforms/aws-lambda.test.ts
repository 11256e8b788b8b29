import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { LambdaHttpResponse } from '../../adapters/aws-lambda.ts'
import { encodePayload, samplePayload } from '../../src/testing/index.ts'
import { httpApiEvent } from '../adapters/lambda-events.ts'
import { postJson } from '../support/post-json.ts'
import { findRedis } from '../support/redis/find-redis.ts'
import { handledFile, queueDeployment } from './lambda/deployment.ts'
import { bundleFunction, LambdaFunction } from './lambda/lambda-function.ts'
import { provePlatform } from './platform.suite.ts'

const eventOf = (number: number) => {
  const body = encodePayload(samplePayload('encoding.finished', { media_id: `media-${number}` }))
  return httpApiEvent({ headers: [['content-type', 'application/json']], body })
}
/** The environment by which a function knows that it is on Lambda. */
const onLambda = { AWS_LAMBDA_FUNCTION_NAME: 'receive' }

const numbers = Array.from({ length: 14 }, (_, number) => number)

describe('a memory inbox in sandboxes that are frozen after each answer', () => {
  let bundled: Awaited<ReturnType<typeof bundleFunction>>
  beforeAll(async () => {
    bundled = await bundleFunction('memory')
  })
  afterAll(() => bundled.remove())

  function deploy(env: Record<string, string>) {
    const handled = handledFile()
    const deployed = new LambdaFunction({
      bundle: bundled.bundle,
      handler: 'receive',
      env: { HANDLED: handled.path, HANDLER_MS: '0', ...env },
    })
    onTestFinished(async () => {
      await deployed.shutDown()
      handled.remove()
    })
    const deliver = async (number: number) => (await deployed.invoke(eventOf(number))) as LambdaHttpResponse
    return { deployed, handled, deliver }
  }

  test('is an error at the start, so that no event is acknowledged', async () => {
    const { deployed } = deploy(onLambda)
    await expect(deployed.warm()).rejects.toThrow(
      'createReceiver: AWS Lambda stops an instance after its answer, and memoryInbox loses events it has ' +
        'acknowledged: use queueInbox with SQS',
    )
  })

  test('loses what it has acknowledged, were it not for that error', async () => {
    const { deployed, handled, deliver } = deploy({ HANDLER_MS: '2000' })
    for (const number of numbers) expect((await deliver(number)).statusCode).toBe(200)
    await deployed.killFrozen()
    expect(deployed.started).toBe(1)
    expect(handled.read().length).toBeLessThan(numbers.length)
  })

  test("loses nothing with ack 'handled', but two sandboxes handle an event twice", async () => {
    const { deployed, handled, deliver } = deploy({ ...onLambda, ACK: 'handled' })
    for (const number of numbers) expect((await deliver(number)).body).toBe('{"status":"handled"}')
    await deployed.killFrozen()
    expect(handled.read()).toHaveLength(numbers.length)
    expect((await deliver(0)).body).toBe('{"status":"handled"}')
    expect(handled.read()).toHaveLength(numbers.length + 1)
  })
})

describe.skipIf(!findRedis())('a queue', () => {
  test('loses nothing and handles each event once, in the order of each media item, although sandboxes are killed', async () => {
    const deployment = await queueDeployment()
    onTestFinished(() => deployment.stop())
    const deliver = async (media: string, quality: number) => {
      const payload = samplePayload('partial.finished', { media_id: media, qualities: `${quality}p` })
      const { status } = await postJson(deployment.url, encodePayload(payload))
      expect(status).toBe(200)
    }
    const qualities = [1, 2, 3, 4]
    for (const quality of qualities) {
      // Deliveries of one moment start several sandboxes.
      await Promise.all(['a', 'b', 'c', 'a'].map((media) => deliver(media, quality)))
      await deployment.killFrozen()
    }
    await expect.poll(deployment.handled).toHaveLength(3 * qualities.length)
    for (const media of ['a', 'b', 'c']) {
      const ofMedia = (await deployment.handled()).filter((line) => line.startsWith(`partial.finished ${media} `))
      expect(ofMedia).toEqual(qualities.map((quality) => `partial.finished ${media} ${quality}p`))
    }
  })

  provePlatform('aws-lambda queue', queueDeployment)
})
