import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { fetchHandler } from '../../adapters/fetch.ts'
import { nodeHandler } from '../../adapters/node.ts'
import { mediaService } from '../../src/events/media-service/sender.ts'
import { headerToken, hmacSignature, type ReceiverOptions, type Verifier } from '../../src/index.ts'
import { readBody } from '../../src/receiver/steps.ts'
import { untyped } from '../support/untyped.ts'
import { receiverWith } from './listening-receiver.ts'

const token = headerToken({ secret: 'secret', header: 'x-token' })
const signature = hmacSignature({ secret: 'secret', header: 'x-signature' })
const post = { method: 'POST', url: '/', headers: new Headers({ 'x-token': 'wrong' }) }

/** Sends the head of a delivery and no byte of its body, and returns what comes back. */
async function answerToHead(options: Partial<ReceiverOptions>): Promise<string> {
  const receiver = receiverWith(options)
  const server = createServer(nodeHandler(receiver)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  onTestFinished(() => {
    socket.destroy()
    server.close()
  })
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\nContent-Type: application/json\r\n\r\n')
  const [answer] = await once(socket, 'data')
  return String(answer)
}

describe('the body of a delivery', () => {
  test('is not read if a verifier that needs no bytes does not verify the delivery', async () => {
    const read = vi.fn(() => new Uint8Array())
    expect(await receiverWith({ verify: token }).receive({ ...post, body: read })).toMatchObject({ status: 401 })
    expect(read).not.toHaveBeenCalled()
  })

  test('is read before a verifier that needs its bytes', async () => {
    const order: string[] = []
    const verify: Verifier = {
      ...signature,
      verify: ({ body }) => {
        order.push(`verify ${body.byteLength}`)
        return { verified: true }
      },
    }
    const body = () => {
      order.push('read')
      return new TextEncoder().encode('{}')
    }
    await receiverWith({ verify }).receive({ ...post, body })
    expect(order).toEqual(['read', 'verify 2'])
  })

  test('need not arrive before a forged delivery over HTTP is answered', async () => {
    expect(await answerToHead({ verify: token })).toMatch(/^HTTP\/1.1 401/)
  })

  test('need not arrive before a forged delivery in a Request is answered', async () => {
    const never = new ReadableStream({ pull: () => new Promise(() => {}) })
    const init = { method: 'POST', body: never, duplex: 'half', headers: { 'content-type': 'application/json' } }
    const request = new Request('http://localhost/', init as RequestInit)
    expect((await fetchHandler(receiverWith({ verify: token }))(request)).status).toBe(401)
  })

  test('is waited for no longer than bodyTimeoutMs, after which the connection ends', async () => {
    const answer = await answerToHead({ verify: signature, bodyTimeoutMs: 30 })
    expect(answer).toMatch(/^HTTP\/1.1 400/)
    expect(answer).toMatch(/connection: close/i)
  })

  test('is waited for 10 s by default', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const answered = vi.fn()
    void receiverWith({ verify: signature })
      .receive({ ...post, body: () => new Promise(() => {}) })
      .then(answered)
    await vi.advanceTimersByTimeAsync(9_990)
    expect(answered).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(20)
    expect(answered).toHaveBeenCalledWith(expect.objectContaining({ outcome: 'incomplete' }))
  })

  test.each([
    ['has arrived', async () => new Uint8Array()],
    ['was cut off', () => Promise.reject(new Error('reset'))],
  ])('leaves nothing behind that waits for its time limit once it %s', async (_, body) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    await Promise.allSettled([
      readBody(
        { ...post, body },
        { parsing: { sender: mediaService }, verifier: token, maxBodyBytes: 100, bodyTimeoutMs: 10_000 },
      ),
    ])
    expect(vi.getTimerCount()).toBe(0)
  })

  test.each([0, -1, 1.5, '10'])('cannot be given a time limit of %s', (bodyTimeoutMs) => {
    expect(() => receiverWith({ bodyTimeoutMs: bodyTimeoutMs as number })).toThrow(/bodyTimeoutMs/)
  })
})

describe('a verifier that never answers', () => {
  const stuck: [string, () => unknown][] = [
    ['its promise never settles', () => new Promise(() => {})],
    ['it returns a thenable that never settles', () => ({ then() {} })],
  ]

  describe.each(stuck)('because %s', (_, answer) => {
    test.each([true, false])('rejects the delivery after 10 s, and does not hold up close (%s)', async (needsBytes) => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
      onTestFinished(() => void vi.useRealTimers())
      const [answered, closed] = [vi.fn(), vi.fn()]
      const receiver = receiverWith({ verify: { name: 'stuck', needsBytes, verify: untyped(answer) } })
      void receiver.receive({ ...post, body: () => new Uint8Array() }).then(answered)
      void receiver.close({ timeoutMs: 60_000 }).then(closed)
      await vi.advanceTimersByTimeAsync(9_990)
      expect([answered.mock.calls, closed.mock.calls]).toEqual([[], []])
      await vi.advanceTimersByTimeAsync(20)
      expect(answered).toHaveBeenCalledWith(expect.objectContaining({ status: 503, outcome: 'unavailable' }))
      expect(closed).toHaveBeenCalled()
    })
  })
})
