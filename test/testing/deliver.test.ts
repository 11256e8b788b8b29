import { describe, expect, test } from 'vitest'
import { createReceiver, type MediaEvent, type ReceiverOptions, unverified, urlToken } from '../../src/index.ts'
import { deliver, makeDelivery, samplePayload, signWithUrlToken } from '../../src/testing/index.ts'
import { silent } from '../support/silent.ts'
import { untyped } from '../support/untyped.ts'

const payload = samplePayload('encoding.finished')
const text = (body: unknown) => new TextDecoder().decode(body as Uint8Array)

const receiverOf = (options: Partial<ReceiverOptions> = {}) =>
  createReceiver({ verify: unverified(), logger: silent, ...options })

describe('deliver', () => {
  test('passes a payload to the receiver and returns the acknowledgement', async () => {
    const events: MediaEvent[] = []
    const { handled, ...acknowledgement } = await deliver(
      receiverOf().onAny((event) => void events.push(event)),
      payload,
    )
    await handled
    expect(acknowledgement).toEqual({
      outcome: 'accepted',
      status: 200,
      headers: { 'content-type': 'application/json', 'content-length': '21' },
      body: '{"status":"accepted"}',
    })
    expect(events).toMatchObject([{ type: 'encoding.finished', format: 'flat', payload }])
  })

  test('resolves before the event is handled, and its `handled` resolves afterwards', async () => {
    let finish = () => {}
    let finished = false
    const receiver = receiverOf().onAny(async () => {
      await new Promise<void>((resolve) => {
        finish = resolve
      })
      finished = true
    })
    const { handled } = await deliver(receiver, payload)
    await new Promise(setImmediate)
    expect(finished).toBe(false)
    finish()
    expect(await handled).toBe('handled')
    expect(finished).toBe(true)
  })

  test('resolves its `handled` with `failed` for an event that becomes a dead letter', async () => {
    const receiver = receiverOf({ retry: { attempts: 2, baseMs: 1 } }).onAny(() => Promise.reject(new Error('no')))
    expect(await (await deliver(receiver, payload)).handled).toBe('failed')
    expect(await receiver.inbox.deadLetters.get((await receiver.inbox.deadLetters.list())[0]?.key ?? '')).toBeDefined()
  })

  test('resolves its `handled` immediately when there is nothing to handle', async () => {
    const receiver = receiverOf().on('encoding.finished', () => new Promise(() => {}))
    await deliver(receiver, payload)
    for (const content of [payload, samplePayload('encoding.failed'), 'no JSON']) {
      const { outcome, handled } = await deliver(receiver, content)
      await handled
      expect(outcome).toMatch(/duplicate|ignored|malformed/)
    }
  })

  test('signs with the given signer', async () => {
    const options = { secret: 's3cret' }
    const receiver = receiverOf({ verify: urlToken(options) }).onAny(() => {})
    expect((await deliver(receiver, payload)).status).toBe(401)
    expect((await deliver(receiver, payload, { sign: signWithUrlToken(options) })).status).toBe(200)
    expect((await deliver(receiver, payload, { sign: signWithUrlToken({ secret: 'guess' }) })).status).toBe(401)
  })

  test('needs only the method receive of a receiver', async () => {
    const acknowledgement = { outcome: 'accepted', status: 200, headers: {}, body: '{}' } as const
    expect(await deliver({ receive: async () => acknowledgement }, payload)).toMatchObject(acknowledgement)
  })

  test.each([undefined, createReceiver, {}])(
    'rejects with invalid_option without a receiver (%s)',
    async (receiver) => {
      await expect(deliver(untyped(receiver), payload)).rejects.toMatchObject({
        code: 'invalid_option',
        message: 'deliver: give it a receiver; are the parentheses of createReceiver() missing?',
      })
    },
  )

  test.each([undefined, null, 3, ['text']])(
    'rejects with invalid_option for %j, which is not a payload',
    async (given) => {
      await expect(deliver(receiverOf(), untyped(given))).rejects.toMatchObject({
        code: 'invalid_option',
        message: expect.stringContaining("such as samplePayload('encoding.finished')"),
      })
    },
  )

  test('names the field that a payload lacks', async () => {
    const { title, ...rest } = payload
    await expect(deliver(receiverOf(), untyped(rest))).rejects.toMatchObject({
      code: 'invalid_option',
      message: expect.stringMatching(/title must be a string.*samplePayload/),
    })
  })
})

describe('makeDelivery', () => {
  test('makes a POST of JSON to the usual path, unsigned and flat', async () => {
    const delivery = await makeDelivery(payload)
    expect(delivery).toMatchObject({ method: 'POST', url: '/webhooks/media' })
    expect(delivery.headers.get('Content-Type')).toBe('application/json')
    expect(JSON.parse(text(delivery.body))).toEqual(payload)
    expect(delivery.waitUntil).toBeUndefined()
  })

  test('uses the given format, URL and header fields', async () => {
    const headers = { 'content-type': 'text/plain', 'X-Id': 'id-1' }
    const delivery = await makeDelivery(payload, { format: 'envelope', url: '/hook?a=1', headers })
    expect(delivery.url).toBe('/hook?a=1')
    expect([delivery.headers.get('content-type'), delivery.headers.get('x-id')]).toEqual(['text/plain', 'id-1'])
    expect(JSON.parse(text(delivery.body))).toMatchObject({
      event: 'encoding.finished',
      data: { videoId: payload.media_id },
    })
  })

  test('accepts the exact string or bytes of a body', async () => {
    expect(text((await makeDelivery('{ "any" : "text" 😀')).body)).toBe('{ "any" : "text" 😀')
    const bytes = Uint8Array.of(0xff, 0x00)
    expect((await makeDelivery(bytes)).body).toEqual(bytes)
  })

  test('signs the exact bytes of the body it delivers', async () => {
    const seen: Uint8Array[] = []
    const delivery = await makeDelivery(payload, {
      sign: async (draft) => {
        seen.push(draft.body)
        return { ...draft, headers: { ...draft.headers, 'x-signed': 'yes' } }
      },
    })
    expect(seen).toEqual([delivery.body])
    expect(delivery.headers.get('x-signed')).toBe('yes')
  })
})
