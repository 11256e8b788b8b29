import { IncomingMessage, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { koaHandler } from '../../adapters/koa.ts'
import { nodeHandler, toDelivery } from '../../adapters/node.ts'
import { makeDelivery } from '../../src/testing/index.ts'
import { serveWebhook } from '../support/serve.ts'
import { untyped } from '../support/untyped.ts'
import { bytes, forgery, freshBody, post, url, watchedReceiver } from './receivers.ts'

// Requests and responses that Node did not make, or that a library has patched.

/** Makes a signed request the way serverless-http does. */
async function serverlessRequest(signer: Pick<typeof bytes, 'sign'>) {
  const body = Buffer.from(freshBody())
  const { url, headers } = await makeDelivery(body, { sign: signer.sign })
  const request = new IncomingMessage(
    untyped({ readable: true, remoteAddress: '', address() {}, end() {}, destroy() {} }),
  )
  const fields = { ...Object.fromEntries(headers as Headers), 'content-length': String(body.byteLength) }
  Object.assign(request, { method: 'POST', url, complete: true, httpVersionMajor: 1, headers: fields, body })
  request._read = () => {
    request.push(body)
    request.push(null)
  }
  return request
}

/** A response that records what it is told, and whose methods return nothing. */
function recordingResponse() {
  const answer = { status: 0, body: '', ended: false }
  const response = {
    writeHead(status: number) {
      answer.status = status
    },
    write(body: string) {
      answer.body += body
    },
    end(body = '') {
      answer.body += body
      answer.ended = true
    },
  }
  return { answer, response: response as unknown as ServerResponse }
}

const accepted = { status: 200, body: '{"status":"accepted"}', ended: true }

describe.each([
  ['that needs the bytes', bytes],
  ['of the URL', url],
])('a verifier %s', (_, signer) => {
  test('accepts a request of serverless-http, which has no rawHeaders', async () => {
    const { receiver } = watchedReceiver(signer)
    const { answer, response } = recordingResponse()
    await nodeHandler(receiver)(await serverlessRequest(signer), response)
    expect(answer).toEqual(accepted)
  })

  test('accepts the plain object of a mock, which keeps the bytes', async () => {
    const { receiver } = watchedReceiver(signer)
    const { answer, response } = recordingResponse()
    const body = freshBody()
    const delivery = await makeDelivery(body, { sign: signer.sign })
    const headers = Object.fromEntries(
      [...(delivery.headers as Headers)].map(([name, value]) => [name.toUpperCase(), [value]]),
    )
    await nodeHandler(receiver)(untyped({ method: 'POST', url: delivery.url, headers, rawBody: body }), response)
    expect(answer).toEqual(accepted)
  })
})

test('a mock with `Headers`, whose bytes are gone, is told from a request of Node, and the log names the fix', async () => {
  const { receiver, lines } = watchedReceiver(bytes)
  const { answer, response } = recordingResponse()
  const request = { method: 'POST', url: '/', headers: new Headers({ 'content-type': 'application/json' }), body: {} }
  await nodeHandler(receiver)(untyped(request), response)
  expect([answer.status, lines.at(-1)?.message]).toEqual([500, expect.stringMatching(/request\.raw in Fastify/)])
})

test("a request without fields has a delivery too, and Fastify's own response is refused", async () => {
  expect(toDelivery(untyped({})).headers.get('x')).toBe(null)
  const { receiver } = watchedReceiver(bytes)
  const handled = nodeHandler(receiver)(untyped({ method: 'POST', headers: {} }), untyped({ raw: {}, send() {} }))
  await expect(handled).rejects.toMatchObject({ code: 'invalid_option', message: expect.stringMatching(/reply\.raw/) })
})

test('a delivery is answered through a writeHead that returns nothing, as that of old on-headers', async () => {
  const { receiver } = watchedReceiver(bytes)
  const handler = nodeHandler(receiver)
  const target = await serveWebhook((request, response) => {
    const { writeHead } = response
    response.writeHead = untyped((...args: [number]) => void writeHead.apply(response, args))
    return handler(request, response)
  })
  expect((await post(target, bytes)).status).toBe(200)
})

test('a response that throws ends the connection, and the handler resolves', async () => {
  const { receiver, reports } = watchedReceiver(bytes)
  const handler = nodeHandler(receiver)
  const resolved: unknown[] = []
  const target = await serveWebhook(async (request, response) => {
    response.writeHead = () => {
      throw new Error('of a patch')
    }
    resolved.push(await handler(request, response))
  })
  await expect(post(target, bytes)).rejects.toThrow('fetch failed')
  expect([resolved, reports.map(({ outcome }) => outcome)]).toEqual([[undefined], ['accepted']])
})

describe('a getter of `body` that throws', () => {
  const lazy = <Request extends object>(request: Request, touched: string[] = []): Request =>
    Object.defineProperty(request, 'body', {
      get() {
        touched.push('body')
        throw new Error('Invalid JSON')
      },
    })

  test('does not reject, and the stream is read', async () => {
    const { receiver } = watchedReceiver(bytes)
    const { answer, response } = recordingResponse()
    await nodeHandler(receiver)(untyped(lazy(await serverlessRequest(bytes))), response)
    expect(answer).toEqual(accepted)
  })

  test('is not called for a forged delivery', async () => {
    const { receiver } = watchedReceiver(url)
    const { answer, response } = recordingResponse()
    const touched: string[] = []
    await nodeHandler(receiver)(untyped(lazy(await serverlessRequest(forgery), touched)), response)
    expect([answer.status, touched]).toEqual([401, []])
  })

  test('leaves a request whose stream was read without a body', async () => {
    const { receiver } = watchedReceiver(bytes)
    const request = lazy(Object.assign(Readable.from([]), { method: 'POST', url: '/', headers: {} }))
    for await (const _ of request) expect.fail()
    const { answer, response } = recordingResponse()
    await nodeHandler(receiver)(untyped(request), response)
    expect(JSON.parse(answer.body).code).toBe('body_consumed')
    const context = { req: request, res: response, request: lazy({}), set() {}, status: 0, body: '' }
    await koaHandler(receiver)(untyped(context))
    expect(context.status).toBe(500)
  })
})

test('the bytes of another realm are bytes', async () => {
  const { receiver } = watchedReceiver(bytes)
  const { answer, response } = recordingResponse()
  const body = freshBody()
  const request = await serverlessRequest(bytes)
  const { headers } = await makeDelivery(body, { sign: bytes.sign })
  request.headers = Object.fromEntries(headers as Headers)
  const foreign = runInNewContext('Uint8Array.from(bytes)', { bytes: [...body] })
  await nodeHandler(receiver)(untyped(Object.assign(request, { rawBody: foreign })), response)
  expect(answer).toEqual(accepted)
})
