import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { describe, expect, test } from 'vitest'
import type { Emulator } from '../../../src/service/emulator/index.ts'
import { serveWebhook } from '../../support/serve.ts'
import { answering, api, emulate, receive, subscribe } from './started-emulator.ts'

describe('a sending', () => {
  async function sent(): Promise<{ emulator: Emulator; sendingId: string; webhookId: string; bodies: string[] }> {
    const emulator = await emulate()
    const bodies: string[] = []
    const { id } = await subscribe(emulator, await serveWebhook(collecting(bodies)), ['file_received'])
    emulator.addMedia()
    await emulator.settled()
    return { emulator, sendingId: emulator.sendings()[0]?.id ?? '', webhookId: id, bodies }
  }

  test('can be repeated, which sends the same event alone', async () => {
    const { emulator, sendingId, bodies } = await sent()
    const again = emulator.repeat(sendingId)
    await emulator.settled()
    expect(again.id).not.toBe(sendingId)
    expect(emulator.sendings()).toMatchObject([{ id: again.id, state: 'acknowledged' }, { id: sendingId }])
    expect(bodies).toEqual([bodies[0], bodies[0]])
  })

  test('is repeated to the current URL of its webhook, with its current behaviour', async () => {
    const { emulator, sendingId, webhookId } = await sent()
    const moved = await receive()
    await api(emulator, 'PATCH', `/webhooks/${webhookId}`, { url: moved.url })
    emulator.behave(webhookId, { format: 'envelope' })
    emulator.repeat(sendingId)
    await emulator.settled()
    expect(moved.events).toMatchObject([{ type: 'file.received', format: 'envelope' }])
  })

  test('can be repeated once with another behaviour', async () => {
    const { emulator, sendingId, bodies } = await sent()
    emulator.repeat(sendingId, { fault: 'duplicate' })
    await emulator.settled()
    emulator.repeat(sendingId)
    await emulator.settled()
    expect(bodies).toHaveLength(4)
    expect(() => emulator.repeat(sendingId, { fault: 'x' } as object)).toThrow(/behaviour.fault must be one of/)
  })

  test('cannot be repeated when it does not exist, or when its webhook was deleted', async () => {
    const { emulator, sendingId, webhookId } = await sent()
    expect(() => emulator.repeat('nothing')).toThrow('there is no sending with this id')
    await api(emulator, 'DELETE', `/webhooks/${webhookId}`)
    expect(() => emulator.repeat(sendingId)).toThrow('the webhook of this sending was deleted')
  })

  test('is kept after its end, as one of the last maxRecords', async () => {
    const emulator = await emulate({ maxRecords: 3 })
    await subscribe(emulator, await serveWebhook(answering(200)), ['file_received'])
    const ids: string[] = []
    for (let index = 0; index < 5; index++) {
      emulator.addMedia()
      await emulator.settled()
      ids.unshift(emulator.sendings()[0]?.id ?? '')
    }
    expect(emulator.sendings().map(({ id }) => id)).toEqual(ids.slice(0, 3))
  })
})

/** Creates a listener that acknowledges deliveries and records their bodies. */
function collecting(bodies: string[]): RequestListener {
  return async (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    await once(request, 'end')
    bodies.push(Buffer.concat(chunks).toString())
    response.end()
  }
}

describe('onDelivery', () => {
  test('calls its listener with each delivery in turn, copies and test deliveries included', async () => {
    const emulator = await emulate()
    const webhook = await subscribe(emulator, await serveWebhook(answering(503, 200)), ['file_received'])
    emulator.behave(webhook.id, { fault: 'duplicate' })
    const seen: [type: string, attempt: number, status?: number, copy?: boolean][] = []
    emulator.onDelivery(({ attempt, answer, copy }, { payload }) => {
      seen.push([payload.type, attempt, answer?.status, copy])
    })
    emulator.addMedia()
    await emulator.settled()
    expect(seen).toEqual([
      ['file.received', 1, 503, undefined],
      ['file.received', 2, 200, undefined],
      ['file.received', 2, 200, true],
    ])
    await api(emulator, 'POST', `/webhooks/check/${webhook.id}`)
    expect(seen.at(-1)).toEqual(['encoding.started', 1, 200, undefined])
  })

  test('calls it for both deliveries of a concurrent duplicate', async () => {
    const emulator = await emulate()
    const { id } = await subscribe(emulator, await serveWebhook(answering(200)), ['file_received'])
    emulator.behave(id, { fault: 'concurrent-duplicate' })
    const copies: (true | undefined)[] = []
    emulator.onDelivery(({ copy }) => copies.push(copy))
    emulator.addMedia()
    await emulator.settled()
    expect(copies).toEqual([undefined, true])
  })

  test('calls it no more once its function was called', async () => {
    const emulator = await emulate()
    await subscribe(emulator, await serveWebhook(answering(200)), ['file_received'])
    let calls = 0
    const stop = emulator.onDelivery(() => calls++)
    emulator.addMedia()
    await emulator.settled()
    stop()
    emulator.addMedia()
    await emulator.settled()
    expect(calls).toBe(1)
  })

  test('reports an error of its listener as uncaught, and goes on sending', async () => {
    const emulator = await emulate()
    await subscribe(emulator, await serveWebhook(answering(503, 200)), ['file_received'])
    const uncaught: unknown[] = []
    const others = process.listeners('uncaughtException')
    process.removeAllListeners('uncaughtException').on('uncaughtException', (error) => uncaught.push(error))
    emulator.onDelivery(({ attempt }) => {
      throw `error ${attempt}`
    })
    emulator.addMedia()
    await emulator.settled()
    process.removeAllListeners('uncaughtException')
    for (const listener of others) process.on('uncaughtException', listener)
    expect(uncaught).toEqual(['error 1', 'error 2'])
    expect(emulator.sendings()).toMatchObject([{ state: 'acknowledged' }])
  })
})
