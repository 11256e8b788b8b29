import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { Hono } from 'hono'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { changeStream } from '../../../../src/service/emulator/control/events.ts'
import { type ListeningServer, listen } from '../../../../src/service/emulator/http/server.ts'
import { Changes } from '../../../../src/service/emulator/shared/changes.ts'
import { serveWebhook } from '../../../support/serve.ts'
import { ask } from '../ask.ts'
import { answering, emulate, subscribe } from '../started-emulator.ts'

/** Reads a stream of events as it arrives. */
async function follow(url: string) {
  const request = get(url, { agent: false })
  request.on('error', () => {})
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  let said = ''
  response.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  response.on('error', () => {})
  const ended = new Promise((resolve) => response.once('end', resolve))
  return {
    headers: response.headers,
    ended,
    leave: () => request.destroy(),
    said: () => said,
    messages: (): string[][] => [...said.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data)),
  }
}

describe('GET /emulator/events', () => {
  test('names the kinds of things that changed', async () => {
    const emulator = await emulate()
    const stream = await follow(`${emulator.url}/emulator/events`)
    expect(stream.headers['content-type']).toBe('text/event-stream')
    const { id } = await subscribe(emulator, await serveWebhook(answering(200)))
    await expect.poll(stream.messages).toEqual([['webhooks']])
    emulator.behave(id, { format: 'envelope' })
    await expect.poll(stream.messages).toEqual([['webhooks'], ['webhooks']])
    emulator.addMedia()
    await emulator.settled()
    await expect
      .poll(() => new Set(stream.messages().slice(2).flat()))
      .toEqual(new Set(['sendings', 'media', 'webhooks']))
  })

  test('ends when the emulator closes', async () => {
    const emulator = await emulate()
    const stream = await follow(`${emulator.url}/emulator/events`)
    await emulator.close()
    await stream.ended
  })
})

describe('a stream of changes', () => {
  let server: ListeningServer
  let closing: AbortController
  afterEach(async () => {
    closing.abort()
    await server.close()
  })

  async function open() {
    const changes = new Changes()
    closing = new AbortController()
    server = await listen(0)
    server.serve(new Hono().get('/', changeStream(changes, closing.signal)).fetch)
    const url = `http://127.0.0.1:${server.port}`
    return { changes, url }
  }

  test('sends one message at a time, even for many changes', async () => {
    const { changes, url } = await open()
    const stream = await follow(url)
    await expect.poll(stream.said).toBe(': open\n\n')
    const begin = performance.now()
    while (performance.now() - begin < 600) {
      for (let count = 0; count < 1_000; count++)
        changes.notify({ kind: count % 2 ? 'media' : 'sendings', id: `${count}` })
      await new Promise(setImmediate)
    }
    await expect.poll(stream.messages).not.toEqual([])
    // One message for each 200 ms, and one for the rest.
    expect(stream.messages().length).toBeLessThanOrEqual((performance.now() - begin) / 200 + 1)
    expect(stream.messages().every((kinds) => kinds.length <= 2)).toBe(true)
  })

  test('stops listening to changes when its reader leaves', async () => {
    const { changes, url } = await open()
    const subscribe = vi.spyOn(changes, 'subscribe').mockImplementation(() => unsubscribed)
    const unsubscribed = vi.fn()
    const stream = await follow(url)
    expect(subscribe).toHaveBeenCalledOnce()
    stream.leave()
    await expect.poll(() => unsubscribed.mock.calls.length).toBe(1)
  })

  test('does not start for HEAD', async () => {
    const { changes, url } = await open()
    const subscribe = vi.spyOn(changes, 'subscribe')
    const { status, headers } = await ask(url, { method: 'HEAD' })
    expect([status, headers['content-type']]).toEqual([200, 'text/event-stream'])
    expect(subscribe).not.toHaveBeenCalled()
  })
})
