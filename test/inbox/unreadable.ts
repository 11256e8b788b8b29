import { describe, expect, test } from 'vitest'
import { type MediaEvent, type Receiver, type ReceiverOptions, urlToken } from '../../src/index.ts'
import { until } from '../../src/testing/contract/handling.ts'
import { deliver } from '../../src/testing/index.ts'

const secret = 'url-token-4b81'
export const url = `/webhooks/media?token=${secret}`
export const genuine: Partial<ReceiverOptions> = { verify: urlToken({ secret }) }
/** As this version reads it, a field is of the wrong type. */
export const future =
  '{"type":"encoding.finished","media_id":"m1","title":{"en":"A title"}, "emitted_at":"2026-03-01T12:00:00Z"}'
const bytes = (text: string) => new TextEncoder().encode(text)

/** Stands in for a later version of this package, which reads what this one cannot. */
export async function upgraded<T>(run: () => Promise<T>): Promise<T> {
  const parse = JSON.parse
  JSON.parse = (text: string) => {
    const value = parse(text)
    return typeof value?.title === 'object' ? { ...value, title: value.title.en } : value
  }
  try {
    return await run()
  } finally {
    JSON.parse = parse
  }
}

/** Makes a receiver over a fresh inbox, closed with the test. */
export type OpenReceiver = (options: Partial<ReceiverOptions>) => Promise<Receiver>

/** A receiver whose handler takes down what it is given. */
export async function refusing(open: OpenReceiver, options: Partial<ReceiverOptions> = genuine) {
  const receiver = await open(options)
  const handled: MediaEvent[] = []
  receiver.onAny((event) => void handled.push(event))
  return { receiver, letters: receiver.inbox.deadLetters, handled }
}

/** What an inbox has to do that keeps refused deliveries. */
export function checkRefused(open: OpenReceiver): void {
  describe('a delivery that is genuine and cannot be read', () => {
    test('is answered 400, and kept as it was sent', async () => {
      const { receiver, letters } = await refusing(open)
      const before = Date.now()
      expect(await deliver(receiver, future, { url })).toMatchObject({ status: 400, outcome: 'malformed' })
      const [letter] = await letters.list()
      expect(letter).toMatchObject({
        event: undefined,
        attempts: 0,
        completed: [],
        failures: [{ handler: 'none', message: 'field title: expected a string' }],
        refused: { reason: 'field title: expected a string', url: '/webhooks/media' },
      })
      expect(letter?.refused?.body).toEqual(bytes(future))
      expect(letter?.receivedAt.getTime()).toBeGreaterThanOrEqual(before)
      expect(letter?.key).toMatch(/^refused:/)
      expect(await letters.get(letter?.key ?? '')).toEqual(letter)
      expect(await receiver.inbox.stats()).toMatchObject({ waiting: 0, deadLetters: 1 })
      expect(JSON.stringify(letter)).not.toContain(secret)
    })

    test.each([
      ['no UTF-8', new Uint8Array([0x7b, 0xff, 0x00, 0x7d])],
      ['no JSON', bytes('{"type":')],
      ['no object', bytes('[]')],
    ])('is kept where it is %s', async (_, body) => {
      const { receiver, letters } = await refusing(open)
      expect((await deliver(receiver, body, { url })).status).toBe(400)
      const [letter] = await letters.list()
      expect(letter?.refused?.body).toEqual(body)
    })

    test('is kept once, however often the sender repeats it', async () => {
      const { receiver, letters } = await refusing(open)
      for (let i = 0; i < 4; i++) await deliver(receiver, future, { url })
      expect(await letters.list()).toHaveLength(1)
    })

    test('is not kept where it may be forged', async () => {
      const { receiver, letters } = await refusing(open)
      expect((await deliver(receiver, future, { url: '/webhooks/media?token=wrong' })).status).toBe(401)
      expect(await letters.list()).toEqual([])
    })

    test('is refused all the same where it cannot be kept', async () => {
      const { receiver } = await refusing(open)
      await receiver.inbox.close()
      expect((await deliver(receiver, future, { url })).status).toBe(400)
    })

    test('stays when it is replayed and still cannot be read', async () => {
      const { receiver, letters } = await refusing(open)
      await deliver(receiver, future, { url })
      const [letter] = await letters.list()
      await expect(letters.replay(letter?.key ?? '')).rejects.toMatchObject({ code: 'malformed' })
      expect(await letters.list()).toEqual([letter])
    })

    test('is handled once when it is replayed after an upgrade', async () => {
      const { receiver, letters, handled } = await refusing(open)
      await deliver(receiver, future, { url })
      const [letter] = await letters.list()
      const key = letter?.key ?? ''
      expect(await upgraded(async () => letters.replay(key))).toBe(true)
      await until(async () => handled.length === 1)
      expect(handled[0]).toMatchObject({ type: 'encoding.finished', mediaId: 'm1', title: 'A title' })
      expect(await letters.list()).toEqual([])
      expect(await letters.replay(key)).toBe(false)
      expect(await upgraded(async () => deliver(receiver, future, { url }))).toMatchObject({ outcome: 'duplicate' })
      expect(handled).toHaveLength(1)
    })

    test('has the event key that it would have had', async () => {
      const { receiver, letters, handled } = await refusing(open, { ...genuine, eventKey: { header: 'x-event-id' } })
      await deliver(receiver, future, { url, headers: { 'x-event-id': 'id-1' } })
      const [letter] = await letters.list()
      await upgraded(async () => letters.replay(letter?.key ?? ''))
      await until(async () => handled.length === 1)
      expect(handled[0]?.key).toBe('id-1')
    })

    test('is discarded', async () => {
      const { receiver, letters } = await refusing(open)
      await deliver(receiver, future, { url })
      const [letter] = await letters.list()
      expect(await letters.discard(letter?.key ?? '')).toBe(true)
      expect(await letters.list()).toEqual([])
    })
  })
}
