import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type LambdaHttpEvent, lambdaHandler } from '../../adapters/aws-lambda.ts'
import { queueInbox } from '../../src/inbox/queue.ts'
import { type Delivery, lruStore, memoryInbox, type Receiver } from '../../src/index.ts'
import { makeDelivery } from '../../src/testing/index.ts'
import { untyped } from '../support/untyped.ts'
import { httpApiEvent, loadBalancerEvent, type Request, restApiEvent } from './lambda-events.ts'
import { bytes, freshBody, url, watchedReceiver } from './receivers.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

const gateways: Record<string, (request: Request) => LambdaHttpEvent> = {
  'a REST API': restApiEvent,
  'an HTTP API or function URL': httpApiEvent,
  'a load balancer': (request) => loadBalancerEvent(request, false),
  'a load balancer with multi-value headers': (request) => loadBalancerEvent(request, true),
}

const json = [['Content-Type', 'application/json']] as const

/** A receiver with a queue, and the messages that it sent. */
function queueing(verifier: Parameters<typeof watchedReceiver>[0] = url) {
  const sent: unknown[] = []
  const inbox = queueInbox({ send: (message) => void sent.push(message), store: { ...lruStore(), ...sharedStore } })
  return { sent, ...watchedReceiver({ ...verifier, inbox }) }
}
// Acts as a store on another machine, so that there is nothing to warn of.
const sharedStore = { isLocal: false, claims: lruStore().claims }

/** Accepts every delivery, and keeps it. */
const receivingInto =
  (deliveries: Delivery[]): Receiver['receive'] =>
  async (delivery) => {
    deliveries.push(delivery)
    return { outcome: 'accepted', status: 200, headers: {}, body: '' }
  }

/** Makes the request of a signed delivery. */
async function requestOf(sign: typeof bytes.sign, body = freshBody(), base64 = false): Promise<Request> {
  const { url: target, headers } = await makeDelivery(body, { url: '/webhooks/media', sign })
  const [path, query] = target.split('?', 2)
  return { path: path as string, query: query ?? '', headers: [...(headers as Headers)], body, base64 }
}

describe.each(Object.entries(gateways))('behind %s', (_, toEvent) => {
  test.each([true, false])('the exact bytes of a body are verified, in base64: %s', async (base64) => {
    const { receiver, sent } = queueing(bytes)
    const body = new TextEncoder().encode(`{ "type":"encoding.finished","media_id":"\\u0061","title":"映画 🎬" }\n`)
    const response = await lambdaHandler(receiver)(toEvent(await requestOf(bytes.sign, body, base64)))
    expect(response).toMatchObject({ statusCode: 200, body: '{"status":"accepted"}', isBase64Encoded: false })
    expect(sent).toMatchObject([{ mediaId: 'a', event: { title: '映画 🎬' } }])
  })

  test('a token in the query is verified, with any characters', async () => {
    const { receiver, sent } = queueing(url)
    const handler = lambdaHandler(receiver)
    const { query, ...request } = await requestOf(url.sign)
    expect((await handler(toEvent({ ...request, query: `a=1&${query}&b=%26` }))).statusCode).toBe(200)
    expect((await handler(toEvent({ ...request, query: `${query}&${query}` }))).statusCode).toBe(
      toEvent === gateways['a load balancer'] ? 200 : 401,
    )
    expect((await handler(toEvent({ ...request, query: '' }))).statusCode).toBe(401)
    expect(sent.length).toBeGreaterThan(0)
  })

  test('the delivery has the method, path, query and header fields as sent', async () => {
    const deliveries: Delivery[] = []
    const headers = [
      ['X-One', '1'],
      ['x-Two', 'a b'],
    ] as const
    await lambdaHandler({ receive: receivingInto(deliveries) })(
      toEvent({ method: 'PUT', path: '/a/b', query: 'x=%C3%A9%20&y=', headers }),
    )
    const [delivery] = deliveries as [Delivery]
    expect(delivery.method).toBe('PUT')
    expect(new URL(delivery.url, 'http://host').pathname).toBe('/a/b')
    expect([...new URL(delivery.url, 'http://host').searchParams]).toEqual([
      ['x', 'é '],
      ['y', ''],
    ])
    expect(delivery.headers.get('X-ONE')).toBe('1')
    expect(delivery.headers.get('x-two')).toBe('a b')
    expect(delivery.headers.get('x-three')).toBe(null)
    expect(typeof delivery.body === 'function' && (await delivery.body(10))).toEqual(Buffer.alloc(0))
  })

  test('a header that was sent several times has each value that the gateway passes, in order', async () => {
    const deliveries: Delivery[] = []
    const handler = lambdaHandler({ receive: receivingInto(deliveries) })
    const headers = [
      ['X-Many', '1'],
      ['X-Many', '2'],
      ['x-many', '3'],
    ] as const
    await handler(toEvent({ headers }))
    const passed = toEvent === gateways['a load balancer'] ? ['3'] : ['1', '2', '3']
    expect(deliveries[0]?.headers.get('x-many')?.split(/, ?/)).toEqual(passed)
  })

  test('rejections have their status and header fields', async () => {
    const { receiver } = queueing({ ...url, maxBodyBytes: 100 })
    const handler = lambdaHandler(receiver)
    const request = { ...(await requestOf(url.sign)), headers: json }
    const fieldOf = ({ headers, multiValueHeaders }: Awaited<ReturnType<typeof handler>>, name: string) =>
      headers?.[name] ?? multiValueHeaders?.[name]?.join()
    const wrongMethod = await handler(toEvent({ ...request, method: 'GET' }))
    expect(wrongMethod.statusCode).toBe(405)
    expect(fieldOf(wrongMethod, 'allow')).toBe('POST')
    expect(fieldOf(wrongMethod, 'content-type')).toBe('application/json')
    expect(fieldOf(wrongMethod, 'content-length')).toBe(undefined)
    expect((await handler(toEvent({ ...request, body: ' '.repeat(101) }))).statusCode).toBe(413)
    expect((await handler(toEvent({ ...request, body: ' '.repeat(101), base64: true }))).statusCode).toBe(413)
    expect((await handler(toEvent({ ...request, body: 'no JSON' }))).statusCode).toBe(400)
    expect((await handler(toEvent({ ...request, headers: [['content-type', 'text/plain']] }))).statusCode).toBe(415)
    const gzip = [...json, ['content-encoding', 'gzip']] as const
    expect((await handler(toEvent({ ...request, headers: gzip }))).statusCode).toBe(415)
    await receiver.close()
    const closing = await handler(toEvent(request))
    expect(closing.statusCode).toBe(503)
    expect(fieldOf(closing, 'retry-after')).toBe('3')
  })
})

describe('the answer', () => {
  const multiValues = async (event: LambdaHttpEvent) => {
    const response = await lambdaHandler(queueing().receiver)(event)
    expect((response.headers === undefined) !== (response.multiValueHeaders === undefined)).toBe(true)
    return response.multiValueHeaders
  }

  test('has multi-value headers if and only if the request had them', async () => {
    const lists = { 'content-type': ['application/json'] }
    expect(await multiValues(loadBalancerEvent({}, true))).toEqual(lists)
    expect(await multiValues(restApiEvent({}))).toEqual(lists)
    expect(await multiValues(loadBalancerEvent({}, false))).toBe(undefined)
    expect(await multiValues(httpApiEvent({}))).toBe(undefined)
    expect(await multiValues({ ...restApiEvent({}), multiValueHeaders: null })).toBe(undefined)
  })
})

test.each<[string, unknown, string]>([
  ['undefined', undefined, ''],
  ['null', null, ''],
  ['empty', {}, ''],
  ['of EventBridge', { source: 'aws.s3', detail: {} }, ''],
  ['of SQS', { Records: [{ eventSource: 'aws:sqs' }] }, '; pass SQS messages to sqsHandler'],
])('An event that is %s rejects with a clear error', async (_, event, more) => {
  await expect(lambdaHandler(queueing().receiver)(untyped(event))).rejects.toMatchObject({
    code: 'invalid_option',
    message: `lambdaHandler: the event is not an HTTP request from API Gateway, a function URL or a load balancer${more}`,
  })
})

describe('a receiver that does not fit Lambda', () => {
  beforeEach(() => void vi.stubEnv('AWS_LAMBDA_FUNCTION_NAME', '1'))
  afterEach(() => vi.unstubAllEnvs())

  test('is an error when it is made, which names the inbox that fits', async () => {
    const written = vi.spyOn(console, 'error').mockImplementation(() => {})
    const handler = lambdaHandler(() => watchedReceiver(url).receiver)
    const response = await handler(httpApiEvent(await requestOf(url.sign)))
    expect(response).toMatchObject({ statusCode: 500, body: expect.stringContaining('internal') })
    expect(written).toHaveBeenCalledExactlyOnceWith(
      'media-webhooks: lambdaHandler has no receiver, and answers 500:',
      expect.objectContaining({
        code: 'invalid_option',
        message: expect.stringMatching(
          /AWS Lambda stops an instance .* memoryInbox .*: use queueInbox with SQS, or ack: 'handled'$/,
        ),
      }),
    )
  })

  test('is a warning in its own log when it handles first', async () => {
    const { receiver, lines } = watchedReceiver({ ...url, ack: 'handled', inbox: memoryInbox() })
    const handler = lambdaHandler(receiver)
    expect((await handler(httpApiEvent(await requestOf(url.sign)))).body).toBe('{"status":"handled"}')
    expect(lines.filter(({ level }) => level === 'warn')).toMatchObject([
      { message: expect.stringMatching(/^two instances can handle/) },
    ])
  })

  test('is neither with a queue and a shared store', () => {
    const { receiver, lines } = queueing()
    lambdaHandler(receiver)
    expect(lines).toEqual([])
  })
})

test('A receiver that a function makes is made once, at the first delivery', async () => {
  const { receiver, sent } = queueing()
  const make = vi.fn(async () => receiver)
  const handler = lambdaHandler(make)
  expect(make).not.toHaveBeenCalled()
  const events = await Promise.all([requestOf(url.sign), requestOf(url.sign)])
  const answers = await Promise.all(events.map((request) => handler(httpApiEvent(request))))
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200])
  expect(make).toHaveBeenCalledOnce()
  expect(sent).toHaveLength(2)
})

test.each([undefined, null, {}, 'receiver'])('Without a receiver, but with %j, it throws', (given) => {
  expect(() => lambdaHandler(untyped(given))).toThrow('lambdaHandler: give it a receiver')
})

describe('an event that no gateway documents', () => {
  const rest: object = restApiEvent({})

  test.each<[string, object]>([
    ['a lone surrogate in the query', { multiValueQueryStringParameters: { token: ['\ud800'], '\udc00': ['a'] } }],
    [
      'null in place of a list',
      { multiValueQueryStringParameters: { token: null }, multiValueHeaders: { 'x-a': null } },
    ],
    ['null in place of a value', { multiValueQueryStringParameters: null, queryStringParameters: { token: null } }],
    ['null in place of a header', { multiValueHeaders: null, headers: { 'content-type': null } }],
    ['no headers and no query', { multiValueHeaders: null, headers: null, multiValueQueryStringParameters: null }],
  ])('with %s is answered', async (_, parts) => {
    const { statusCode } = await lambdaHandler(queueing().receiver)(untyped({ ...rest, ...parts }))
    expect(statusCode).toBe(401)
  })

  test('that asks for the head has no body', async () => {
    const { statusCode, body } = await lambdaHandler(queueing().receiver)(restApiEvent({ method: 'HEAD' }))
    expect([statusCode, body]).toEqual([405, ''])
  })
})
