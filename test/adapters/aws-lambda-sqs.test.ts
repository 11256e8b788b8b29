import { describe, expect, test, vi } from 'vitest'
import { type SqsEvent, sqsHandler } from '../../adapters/aws-lambda.ts'
import { queueInbox } from '../../src/inbox/queue.ts'
import { createReceiver, lruStore, type MessageResult, memoryInbox, type Receiver } from '../../src/index.ts'
import { signalled } from '../support/signalled.ts'
import { untyped } from '../support/untyped.ts'
import { url, watchedReceiver } from './receivers.ts'

const standard = 'arn:aws:sqs:eu-west-1:1:events'
const fifo = `${standard}.fifo`

/** Makes a batch of messages: their bodies, each with a group if it has one. */
function batch(queue: string, ...messages: (string | readonly [body: string, group: string])[]): SqsEvent {
  return {
    Records: messages.map((message, index) => {
      const [body, MessageGroupId] = typeof message === 'string' ? [message] : message
      const attributes = { ApproximateReceiveCount: '3', ...(MessageGroupId !== undefined && { MessageGroupId }) }
      return { messageId: `${index}`, body, attributes, eventSourceARN: queue }
    }),
  }
}

/** A receiver whose messages end as their bodies say, and the bodies that it was given, in order. */
function stub(results: Record<string, MessageResult['status'] | Promise<MessageResult['status']>> = {}) {
  const handled: unknown[] = []
  const handle = vi.fn<Receiver['handle']>(async (body) => {
    handled.push(body)
    return { status: (await results[body as string]) ?? 'done', delayMs: 0, failures: [] } as MessageResult
  })
  return { handle, handled }
}

const failed = (...ids: string[]) => ({ batchItemFailures: ids.map((itemIdentifier) => ({ itemIdentifier })) })

describe('a batch of a standard queue', () => {
  test('reports the messages that are not done: those to retry, and those that are dead', async () => {
    const receiver = stub({ b: 'retry', d: 'dead' })
    expect(await sqsHandler(receiver)(batch(standard, 'a', 'b', 'c', 'd', 'e'))).toEqual(failed('1', '3'))
    expect(receiver.handled).toEqual(['a', 'b', 'c', 'd', 'e'])
  })

  test('reports nothing when all are done, and when it is empty', async () => {
    expect(await sqsHandler(stub())(batch(standard, 'a', 'b'))).toEqual(failed())
    expect(await sqsHandler(stub())(batch(standard))).toEqual(failed())
  })

  test('passes on how often SQS has delivered a message', async () => {
    const receiver = stub()
    await sqsHandler(receiver)(batch(standard, 'a'))
    expect(receiver.handle).toHaveBeenCalledExactlyOnceWith('a', { attempt: 3 })
  })

  test('is handled at the same time, also the messages of one of its groups, which are for fairness', async () => {
    const { promise, resolve } = signalled<'done'>()
    const receiver = stub({ a: promise })
    const answer = sqsHandler(receiver)(batch(standard, ['a', 'media'], ['b', 'media']))
    await vi.waitFor(() => expect(receiver.handled).toEqual(['a', 'b']))
    resolve('done')
    expect(await answer).toEqual(failed())
  })
})

describe('a batch of a FIFO queue', () => {
  test('is handled one after another within a group, and the groups at the same time', async () => {
    const { promise, resolve } = signalled<'done'>()
    const receiver = stub({ a1: promise })
    const answer = sqsHandler(receiver)(batch(fifo, ['a1', 'a'], ['b1', 'b'], ['a2', 'a'], ['b2', 'b']))
    await vi.waitFor(() => expect(receiver.handled).toEqual(['a1', 'b1', 'b2']))
    resolve('done')
    expect(await answer).toEqual(failed())
    expect(receiver.handled).toEqual(['a1', 'b1', 'b2', 'a2'])
  })

  test.each(['retry', 'dead'] as const)('reports the rest of a group after one that ends as %s', async (status) => {
    const receiver = stub({ a2: status })
    const messages = [
      ['a1', 'a'],
      ['a2', 'a'],
      ['b1', 'b'],
      ['a3', 'a'],
      ['b2', 'b'],
    ] as const
    expect(await sqsHandler(receiver)(batch(fifo, ...messages))).toEqual(failed('1', '3'))
    expect(receiver.handled).not.toContain('a3')
    expect(receiver.handled).toContain('b2')
  })
})

describe('a failure of the whole batch', () => {
  test('rejects, once every message has ended', async () => {
    const { promise, resolve } = signalled<'done'>()
    const receiver = stub({ b: promise })
    receiver.handle.mockRejectedValueOnce(new Error('no queue'))
    let ended = false
    const answer = sqsHandler(receiver)(batch(standard, 'a', 'b')).finally(() => {
      ended = true
    })
    answer.catch(() => {})
    await new Promise((turn) => setTimeout(turn, 5))
    expect(ended).toBe(false)
    resolve('done')
    await expect(answer).rejects.toThrow('no queue')
  })

  test.each<[string, unknown]>([
    ['undefined', undefined],
    ['of API Gateway', { rawPath: '/' }],
    ['of SNS', { Records: [{ Sns: {} }] }],
    ['with a record that is null', { Records: [null] }],
  ])('is an event that is %s', async (_, event) => {
    await expect(sqsHandler(stub())(untyped(event))).rejects.toMatchObject({
      code: 'invalid_option',
      message: 'sqsHandler: the event has no SQS messages',
    })
  })
})

describe('the receiver', () => {
  const withQueue = (store = lruStore()) => watchedReceiver({ ...url, inbox: queueInbox({ send() {}, store }) })

  test('handles an invalid message as a failure, so that it ends in the dead-letter queue', async () => {
    const { receiver } = withQueue()
    expect(await sqsHandler(receiver)(batch(standard, 'a message of another sender'))).toEqual(failed('0'))
  })

  test('can be made by a function, once, at the first batch', async () => {
    const receiver = stub()
    const make = vi.fn(async () => receiver)
    const handler = sqsHandler(make)
    expect(make).not.toHaveBeenCalled()
    await Promise.all([handler(batch(standard, 'a')), handler(batch(standard, 'b'))])
    await handler(batch(standard, 'c'))
    expect(make).toHaveBeenCalledOnce()
    expect(receiver.handled).toEqual(['a', 'b', 'c'])
  })

  const failures = {
    'rejects once': () => Promise.reject(new Error('no secret')),
    'throws once': () => {
      throw new Error('no secret')
    },
  }

  test.each(Object.entries(failures))('is made again if the function %s, with the next delivery', async (_, fail) => {
    const receiver = stub()
    const make = vi.fn(async () => receiver).mockImplementationOnce(fail)
    const handler = sqsHandler(make)
    await expect(handler(batch(standard, 'a'))).rejects.toThrow('no secret')
    expect(await handler(batch(standard, 'a'))).toEqual(failed())
    expect(receiver.handled).toEqual(['a'])
  })

  test('is no createReceiver without its parentheses', () => {
    expect(() => sqsHandler(untyped(createReceiver))).toThrow('are the parentheses of createReceiver() missing?')
  })

  test('needs a queue', () => {
    const { receiver } = watchedReceiver({ ...url, inbox: memoryInbox() })
    expect(() => sqsHandler(receiver)).toThrow('sqsHandler: its receiver needs queueInbox; memoryInbox has no queue')
  })

  test.each([undefined, null, {}])('is no %j', (given) => {
    expect(() => sqsHandler(untyped(given))).toThrow('sqsHandler: give it a receiver')
  })
})
