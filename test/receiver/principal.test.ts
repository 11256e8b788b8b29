import { describe, expect, test, vi } from 'vitest'
import {
  createReceiver,
  type LookedUpEvent,
  type MediaEvent,
  type ReceiverOptions,
  standardWebhooks,
  urlToken,
} from '../../src/index.ts'
import { deliver, type Payload, samplePayload, signWithStandardWebhooks } from '../../src/testing/index.ts'
import { signalled } from '../support/signalled.ts'
import { silent } from '../support/silent.ts'
import { smallInbox } from './listening-receiver.ts'

const tokens = { acme: 'token-of-acme', zoo: 'token-of-zoo' }
const payload = samplePayload('encoding.finished')

/** Makes a receiver of two tenants whose handler keeps what it gets. */
function receiverOfTenants(options: Partial<ReceiverOptions> = {}) {
  const seen: { event: MediaEvent; principal: string | undefined }[] = []
  const receiver = createReceiver({
    verify: urlToken({ secret: tokens }),
    inbox: smallInbox(),
    logger: silent,
    retry: { baseMs: 1 },
    ...options,
  })
  const send = async (token: string, body: Payload | string = payload, headers = {}) => {
    const { outcome, handled } = await deliver(receiver, body, { url: `/?token=${token}`, headers })
    await handled
    return outcome
  }
  receiver.onAny((event, { principal }) => void seen.push({ event, principal }))
  return { receiver, seen, send }
}

describe('a principal', () => {
  test('reaches handlers in each attempt', async () => {
    const { receiver, send } = receiverOfTenants()
    const attempts: unknown[] = []
    receiver.on('encoding.finished', (event, { principal, attempt }) => {
      attempts.push([attempt, principal, event.principal])
      if (attempt < 2) throw new Error('no')
    })
    expect(await send(tokens.acme)).toBe('accepted')
    expect(attempts).toEqual([
      [1, 'acme', 'acme'],
      [2, 'acme', 'acme'],
    ])
  })

  test('can be given to a look-up, which is then a duplicate of that tenant only', async () => {
    const { receiver, seen, send } = receiverOfTenants()
    const { media_id: mediaId, emitted_at: emittedAt, user_id: userId, status } = payload
    const qualities = `${payload.qualities}`.split(',')
    const found = { type: 'encoding.finished', mediaId, emittedAt, userId, status, qualities } as LookedUpEvent
    expect(await receiver.accept({ ...found, principal: 'acme' })).toBe('accepted')
    expect(await send(tokens.acme)).toBe('duplicate')
    expect(await send(tokens.zoo)).toBe('accepted')
    expect(seen.map(({ event, principal }) => [event.source, principal])).toEqual([
      ['lookup', 'acme'],
      ['delivery', 'zoo'],
    ])
  })

  test('is that of the event that began an expectation, for what its handler looks up', async () => {
    const { receiver, seen, send } = receiverOfTenants()
    const { promise: reported, resolve } = signalled()
    receiver.expect('encoding.finished', { then: 'encoding.failed', within: 20 }, async (overdue) => {
      await overdue.accept({ type: 'encoding.failed' })
      resolve()
    })
    await send(tokens.zoo)
    await reported
    await vi.waitFor(() => expect(seen).toHaveLength(2))
    expect(seen[1]).toMatchObject({ principal: 'zoo', event: { type: 'encoding.failed', source: 'lookup' } })
  })

  test('is not read from the payload', async () => {
    const { seen, send } = receiverOfTenants({ verify: urlToken({ secret: tokens.acme }) })
    await send(tokens.acme, JSON.stringify({ ...payload, principal: 'zoo' }))
    expect(seen).toMatchObject([{ principal: undefined, event: { payload: { principal: 'zoo' } } }])
    expect(seen[0]?.event.principal).toBe(undefined)
  })

  test.each<[string, Payload | string, Partial<ReceiverOptions>, Record<string, string>]>([
    ['has emitted_at', payload, {}, {}],
    ['has none', JSON.stringify({ type: 'encoding.finished', media_id: 'm1' }), {}, {}],
    ['is long', { ...payload, media_id: 'm'.repeat(300) }, {}, {}],
    ['has an id in a header', payload, { eventKey: { header: 'x-event-id' } }, { 'x-event-id': 'id-1' }],
  ])('keeps its events apart from the same ones of another, if the payload %s', async (_, body, options, headers) => {
    const { seen, send } = receiverOfTenants(options)
    for (const token of [tokens.acme, tokens.zoo]) {
      expect(await send(token, body, headers)).toBe('accepted')
      expect(await send(token, body, headers)).toBe('duplicate')
    }
    expect(seen.map(({ principal }) => principal)).toEqual(['acme', 'zoo'])
  })

  test('keeps its events apart from those that another one sends under a signed id', async () => {
    const secrets = { acme: 'c2VjcmV0IG9mIGFjbWU=', zoo: 'c2VjcmV0IG9mIHpvbw==' }
    const { receiver, seen } = receiverOfTenants({ verify: standardWebhooks({ secret: secrets }) })
    for (const secret of Object.values(secrets)) {
      const sign = signWithStandardWebhooks({ secret, id: 'msg-1' })
      const { outcome, handled } = await deliver(receiver, payload, { sign })
      expect(outcome).toBe('accepted')
      await handled
    }
    expect(seen.map(({ event }) => event.key)).toEqual(['["acme","msg-1"]', '["zoo","msg-1"]'])
  })

  test('does not change the key of an event or an unreadable delivery without one, or with an empty one', async () => {
    const keys: (string | undefined)[][] = []
    for (const verify of [
      urlToken({ secret: tokens.acme }),
      { name: 'mine', needsBytes: false, verify: () => ({ verified: true, principal: '' }) as const },
    ]) {
      const { receiver, seen, send } = receiverOfTenants({ verify })
      await send(tokens.acme)
      expect(seen).toMatchObject([{ principal: undefined }])
      expect(await send(tokens.acme, '{}')).toBe('malformed')
      const [unreadable] = await receiver.inbox.deadLetters.list()
      keys.push([seen[0]?.event.key, unreadable?.key])
    }
    expect(keys[0]).toEqual([expect.stringMatching(/^\["encoding.finished",/), expect.stringMatching(/^unreadable:/)])
    expect(keys[1]).toEqual(keys[0])
  })

  test('is known to a function that makes the key', async () => {
    const { seen, send } = receiverOfTenants({ eventKey: ({ principal, mediaId }) => `${principal}/${mediaId}` })
    await send(tokens.zoo)
    expect(seen[0]?.event).toMatchObject({ key: `zoo/${payload.media_id}`, principal: 'zoo' })
  })
})

test('an overdue expectation has the principal of the event that began it', async () => {
  const { receiver, send } = receiverOfTenants()
  const overdue = new Promise((resolve) => {
    receiver.expect('encoding.started', { then: 'encoding.finished', within: 1 }, ({ event }, { principal }) =>
      resolve([principal, event.principal]),
    )
  })
  await send(tokens.zoo, samplePayload('encoding.started'))
  expect(await overdue).toEqual(['zoo', 'zoo'])
})
