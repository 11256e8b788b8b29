import { describe, expect, test } from 'vitest'
import {
  type InboxHost,
  type ReceiverOptions,
  type UnreadableDelivery,
  type Verifier,
  WebhookError,
} from '../../src/index.ts'
import { encodePayload, samplePayload } from '../../src/testing/index.ts'
import { answeringInbox, listening, receiverWith } from './listening-receiver.ts'

const text = (body: Uint8Array | undefined) => new TextDecoder().decode(body)
const bytes = (body: string) => new TextEncoder().encode(body)
const vouching: Verifier = {
  name: 'vouching',
  needsBytes: true,
  verify: () => ({ verified: true, eventId: 'id of the verifier' }),
}
const forging: Verifier = { ...vouching, verify: () => ({ verified: false, reason: 'forged' }) }

/** Makes a receiver whose inbox keeps unreadable deliveries, or fails to. */
function subject(options: Partial<ReceiverOptions> = {}, keep?: () => Promise<void>) {
  const kept: UnreadableDelivery[] = []
  let host: InboxHost | undefined
  const definition = answeringInbox(() => 'accepted', {
    keepUnreadable: (unreadable) => {
      kept.push(unreadable)
      return keep?.()
    },
  })
  const inbox = {
    ...definition,
    open(opening: InboxHost) {
      host = opening
      return definition.open(opening)
    },
  }
  const { lines, deliveries, options: watching } = listening()
  const receiver = receiverWith({ inbox, ...watching, ...options }).onAny(() => {})
  const send = async (body: Uint8Array | { parsed: unknown }, headers: Record<string, string> = {}) =>
    (await receiver.receive({ method: 'POST', url: '/', headers: new Headers(headers), body })).outcome
  return { receiver, kept, send, lines, deliveries, parse: (given: UnreadableDelivery) => host?.parse(given) }
}

describe('an unreadable delivery', () => {
  test('is given to the inbox with the reason, its time and its bytes', async () => {
    const { kept, send } = subject()
    const before = Date.now()
    expect(await send(bytes('{"type":'))).toBe('malformed')
    expect(kept).toHaveLength(1)
    expect(kept[0]).toMatchObject({ reason: expect.stringMatching(/JSON/), eventId: undefined })
    expect(text(kept[0]?.body)).toBe('{"type":')
    expect(kept[0]?.receivedAt.getTime()).toBeGreaterThanOrEqual(before)
  })

  test('is given to the inbox if it is found malformed only once its key is made', async () => {
    const eventKey = () => {
      throw new WebhookError('malformed', 'not as its schema expects')
    }
    const { kept, send } = subject({ eventKey })
    expect(await send(encodePayload(samplePayload('encoding.finished')))).toBe('malformed')
    expect(kept).toMatchObject([{ reason: 'not as its schema expects' }])
  })

  test('is given as JSON if a parser has consumed its bytes', async () => {
    const { kept, send } = subject()
    expect(await send({ parsed: { type: 'encoding.finished' } })).toBe('malformed')
    expect(text(kept[0]?.body)).toBe('{"type":"encoding.finished"}')
  })

  test.each([
    ['a delivery that was not verified', { verify: forging }, bytes('{'), 'unauthorized'],
    ['an oversized one', { maxBodyBytes: 1 }, bytes('{"'), 'too_large'],
    ['a readable one', {}, encodePayload(samplePayload('encoding.finished')), 'accepted'],
  ])('is not %s', async (_, options, body, outcome) => {
    const { kept, send } = subject(options)
    expect(await send(body)).toBe(outcome)
    expect(kept).toEqual([])
  })

  test('is not one whose body could not be read', async () => {
    const { kept, receiver, lines } = subject()
    const body = () => Promise.reject(new WebhookError('malformed', 'half a body'))
    const { outcome } = await receiver.receive({ method: 'POST', url: '/', headers: new Headers(), body })
    expect(outcome).toBe('malformed')
    expect(kept).toEqual([])
    expect(lines.map(({ level }) => level)).toEqual(['warn'])
  })

  test.each<[string, Partial<ReceiverOptions>, Record<string, string>, string | undefined]>([
    ['the verifier', { verify: vouching }, {}, 'id of the verifier'],
    ['the header of eventKey', { verify: vouching, eventKey: { header: 'x-id' } }, { 'x-id': 'sent' }, 'sent'],
    ['the verifier, without that header', { verify: vouching, eventKey: { header: 'x-id' } }, {}, 'id of the verifier'],
    ['the verifier, if eventKey is a function', { verify: vouching, eventKey: () => 'x' }, {}, 'id of the verifier'],
    ['nobody', { eventKey: { header: 'x-id' } }, {}, undefined],
  ])('has the id that comes from %s', async (_, options, headers, id) => {
    const { kept, send } = subject(options)
    await send(bytes('{'), headers)
    expect(kept).toMatchObject([{ eventId: id }])
  })

  test('is parsed again with that id as its key', async () => {
    const { parse } = subject({ eventKey: { header: 'x-id' } })
    const body = encodePayload(samplePayload('encoding.finished'))
    const unreadable = { reason: 'no', receivedAt: new Date(), eventId: 'id-7', body }
    expect(await parse(unreadable)).toMatchObject([{ type: 'encoding.finished', key: 'id-7' }])
  })

  test('is answered 400, and the error is logged, if the inbox fails to keep it', async () => {
    const err = new Error('the disk is full')
    const { send, lines, deliveries } = subject({}, () => Promise.reject(err))
    expect(await send(bytes('{'))).toBe('malformed')
    expect(lines.map(({ level, details }) => [level, details['err']])).toEqual([
      ['error', err],
      ['warn', undefined],
    ])
    expect(deliveries).toMatchObject([{ outcome: 'malformed' }])
  })
})
