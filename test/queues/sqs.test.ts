import {
  ChangeMessageVisibilityCommand,
  DeleteMessageCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { sqsHandler } from '../../adapters/aws-lambda.ts'
import { type QueueMessage, queueInbox } from '../../src/inbox/queue.ts'
import {
  createReceiver,
  type EventKeySource,
  type HandlerContext,
  lruStore,
  type MediaEvent,
  type Receiver,
  unverified,
} from '../../src/index.ts'
import { deliver, type Payload, samplePayload } from '../../src/testing/index.ts'
import { silent } from '../support/silent.ts'
import { EventSource } from './sqs/event-source.ts'
import type { SqsQueueOptions } from './sqs/queue.ts'
import { SqsServer } from './sqs/server.ts'

let server: SqsServer
let sqs: SQSClient
beforeAll(async () => {
  server = await SqsServer.start()
  const credentials = { accessKeyId: 'a-key', secretAccessKey: 'a-secret' }
  sqs = new SQSClient({ region: 'eu-west-1', endpoint: server.endpoint, credentials, maxAttempts: 1 })
})
afterEach(() => {
  server.isDown = false
})
afterAll(async () => {
  sqs?.destroy()
  await server?.close()
})

let queues = 0

/** A queue with its dead-letter queue, and a receiver that sends to it with the vendor's SDK. */
function setUp({ eventKey, ...options }: Partial<SqsQueueOptions> & { readonly eventKey?: EventKeySource } = {}) {
  const suffix = options.fifo ? '.fifo' : ''
  const dead = server.create({ name: `dead-${++queues}${suffix}`, visibilityMs: 1_000, ...options })
  const redrive = { maxReceiveCount: 5, to: dead.queue }
  const { queue, url } = server.create({ name: `queue-${queues}${suffix}`, visibilityMs: 50, redrive, ...options })
  const ids = ({ group, deduplicationId }: QueueMessage) =>
    options.fifo ? { MessageGroupId: group, MessageDeduplicationId: deduplicationId } : {}
  const receiver = createReceiver({
    verify: unverified(),
    inbox: queueInbox({
      send: (message) =>
        sqs.send(new SendMessageCommand({ QueueUrl: url, MessageBody: JSON.stringify(message), ...ids(message) })),
      store: lruStore(),
    }),
    logger: silent,
    ...(eventKey && { eventKey }),
  })
  return { receiver, queue, url, dead: dead.queue, consume: () => consume(receiver, queue) }

  function consume(consumer: Receiver, source: typeof queue) {
    const events = new EventSource(source, (event) => sqsHandler(consumer)(event))
    onTestFinished(() => events.stop())
    return events
  }
}

/** A handler that records `<media> <qualities>` of each run that succeeded. */
function recorder(failures: Record<string, number> = {}) {
  const handled: string[] = []
  const handler = async ({ mediaId, qualities }: MediaEvent, { attempt }: HandlerContext) => {
    await new Promise((resolve) => setTimeout(resolve, 2))
    const name = `${mediaId} ${qualities}`
    if (attempt <= (failures[name] ?? 0)) throw new Error('as asked')
    handled.push(name)
  }
  return { handled, handler }
}

const event = (media_id: string, qualities = '360p'): Payload =>
  samplePayload('partial.finished', { media_id, qualities, emitted_at: new Date().toISOString() })

describe('a standard queue', () => {
  test('hands each event over to the consumer, once, also those that fail at first or come twice', async () => {
    const { receiver, queue, consume } = setUp()
    const { handled, handler } = recorder({ 'media-3 360p': 2 })
    receiver.onAny(handler)
    consume()
    const payloads = Array.from({ length: 25 }, (_, number) => event(`media-${number}`))
    for (const payload of [...payloads, ...payloads.slice(0, 5)]) {
      expect((await deliver(receiver, payload)).status).toBe(200)
    }
    await expect.poll(() => queue.messages).toEqual([])
    expect(handled.toSorted()).toEqual(payloads.map(({ media_id }) => `${media_id} 360p`).toSorted())
    expect(queue.accepted).toBe(30)
  })

  test('moves an event to its dead-letter queue after as many deliveries as attempts, and can send it again', async () => {
    const { receiver, queue, dead, consume } = setUp()
    const attempts: number[] = []
    let isBroken = true
    receiver.onAny((_event, { attempt }) => {
      attempts.push(attempt)
      if (isBroken) throw new Error('as asked')
    })
    consume()
    await deliver(receiver, event('a-film'))
    await expect.poll(() => dead.messages.length).toBe(1)
    expect(queue.messages).toEqual([])
    expect(attempts).toEqual([1, 2, 3, 4, 5])
    // Acts as a redrive from the dead-letter queue: the message returns, and its deliveries are counted anew.
    isBroken = false
    queue.send(dead.messages[0]?.body as string)
    await expect.poll(() => queue.messages).toEqual([])
    expect(attempts).toEqual([1, 2, 3, 4, 5, 1])
  })

  test('that is unreachable is answered 503, and the event is accepted when the sender tries again', async () => {
    const { receiver, queue } = setUp()
    receiver.onAny(() => {})
    const payload = event('a-film')
    server.isDown = true
    expect((await deliver(receiver, payload)).outcome).toBe('unavailable')
    server.isDown = false
    expect((await deliver(receiver, payload)).status).toBe(200)
    expect(queue.messages).toHaveLength(1)
  })

  test('is consumed by a server that polls it, with the delay of each retry', async () => {
    const { receiver, queue, url } = setUp({ visibilityMs: 60_000 })
    const { handled, handler } = recorder({ 'media-1 360p': 1 })
    receiver.onAny(handler)
    for (const number of [0, 1, 2]) await deliver(receiver, event(`media-${number}`))

    const poll = async () => {
      const { Messages = [] } = await sqs.send(
        new ReceiveMessageCommand({
          QueueUrl: url,
          MaxNumberOfMessages: 10,
          MessageSystemAttributeNames: ['ApproximateReceiveCount'],
        }),
      )
      for (const { Body, ReceiptHandle, Attributes } of Messages) {
        const result = await receiver.handle(Body, { attempt: Number(Attributes?.ApproximateReceiveCount) })
        if (result.status === 'done') await sqs.send(new DeleteMessageCommand({ QueueUrl: url, ReceiptHandle }))
        else if (result.status === 'retry') {
          const VisibilityTimeout = Math.ceil(result.delayMs / 1_000)
          await sqs.send(new ChangeMessageVisibilityCommand({ QueueUrl: url, ReceiptHandle, VisibilityTimeout }))
        }
      }
      return queue.messages.length
    }
    expect(await poll()).toBe(1)
    await expect.poll(poll).toBe(0)
    expect(handled.toSorted()).toEqual(['media-0 360p', 'media-1 360p', 'media-2 360p'])
  })
})

describe('a FIFO queue', () => {
  const film = (media: string) => ['240p', '360p', '480p', '720p', '1080p'].map((quality) => event(media, quality))

  test('keeps the order of the events of each media item, over retries and duplicates', async () => {
    const { receiver, queue, consume } = setUp({ fifo: true })
    const { handled, handler } = recorder({ 'b 360p': 1, 'c 1080p': 2 })
    receiver.onAny(handler)
    consume()
    const films = [film('a'), film('b'), film('c')]
    const deliveries = films.map(async (payloads) => {
      for (const payload of payloads) {
        const answers = await Promise.all([deliver(receiver, payload), deliver(receiver, payload)])
        expect(answers.map(({ status }) => status)).toEqual([200, 200])
      }
    })
    await Promise.all(deliveries)
    await expect.poll(() => queue.messages).toEqual([])
    for (const media of ['a', 'b', 'c']) {
      const ofMedia = handled.filter((each) => each.startsWith(media))
      expect(ofMedia).toEqual(film(media).map(({ qualities }) => `${media} ${qualities}`))
    }
    // The queue has dropped the duplicates.
    expect(queue.accepted).toBe(15)
  })

  test('takes the ids of any event, though not every media id and event key', async () => {
    const media_id = `${'a film '.repeat(20)}🎬`
    const { receiver, queue } = setUp({ fifo: true, eventKey: ({ mediaId }) => `key of ${mediaId}` })
    receiver.onAny(() => {})
    expect((await deliver(receiver, event(media_id))).status).toBe(200)
    expect((await deliver(receiver, event(media_id, '720p'))).status).toBe(200)
    expect(queue.accepted).toBe(1)
    const { queue: other, url } = setUp({ fifo: true })
    const raw = { MessageGroupId: media_id, MessageDeduplicationId: `key of ${media_id}` }
    const refused = sqs.send(new SendMessageCommand({ QueueUrl: url, MessageBody: '{}', ...raw }))
    await expect(refused).rejects.toThrow('MessageGroupId has 1 to 128 letters')
    expect(other.accepted).toBe(0)
  })

  test('holds up only the group of a message that fails', async () => {
    const { receiver, queue, consume } = setUp({ fifo: true, visibilityMs: 300 })
    const { handled, handler } = recorder({ 'b 240p': 1 })
    const started = vi.fn(handler)
    receiver.onAny(started)
    for (const payload of [...film('b'), ...film('a')]) await deliver(receiver, payload)
    consume()
    await expect.poll(() => queue.messages).toEqual([])
    expect(handled.slice(0, 5)).toEqual(film('a').map(({ qualities }) => `a ${qualities}`))
    expect(handled.slice(5)).toEqual(film('b').map(({ qualities }) => `b ${qualities}`))
  })
})
