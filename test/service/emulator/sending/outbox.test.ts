import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import type { Sending } from '../../../../src/service/emulator/sending/sending.ts'
import { Changes } from '../../../../src/service/emulator/shared/changes.ts'
import { ownTime } from '../../../support/own-time.ts'
import { listen, listenAndAnswer, mediaIdOf, outboxWith, outcomesOf, payloadOf, refusingUrl } from './targets.ts'

describe('a sending', () => {
  test('can be followed from its beginning to its end', async () => {
    const { url } = await listenAndAnswer(503, 200)
    const changes = new Changes()
    const seen: string[] = []
    const outbox = outboxWith({ changes, clock: () => 1_700_000_000_123_456_789n })
    changes.subscribe(({ kind, id }) => {
      const { state, deliveries } = outbox.get(id) as Sending
      seen.push(`${kind} ${state} ${deliveries.length}`)
    })
    const sending = outbox.send({ id: 'w1', url }, payloadOf('m1'), { format: 'envelope' })
    await outbox.idle()

    expect(sending).toEqual({
      id: expect.any(String),
      webhookId: 'w1',
      url,
      payload: payloadOf('m1'),
      behaviour: { format: 'envelope' },
      createdAt: new Date(1_700_000_000_123),
      state: 'waiting',
      deliveries: [],
    })
    expect(seen).toEqual([
      'sendings waiting 0',
      'sendings delivering 0',
      'sendings retrying 1',
      'sendings delivering 1',
      'sendings acknowledged 2',
    ])
    expect(outbox.get(sending.id)?.deliveries).toMatchObject([
      {
        attempt: 1,
        startedAt: new Date(1_700_000_000_123),
        failure: { reason: 'status', message: 'answered 503' },
        retryInMs: 3,
      },
      { attempt: 2, answer: { status: 200, body: 'answer' } },
    ])
  })

  test('triggers its webhook when it begins, as documented', async () => {
    const triggered: Sending[] = []
    const outbox = outboxWith({ triggered: (sending) => triggered.push(sending) })
    const sent = outbox.send({ id: 'w1', url: (await listenAndAnswer(500, 200)).url }, payloadOf('m1'))
    const failing = outbox.send({ id: 'w2', url: (await listenAndAnswer(500)).url }, payloadOf('m1'))
    outbox.send({ id: 'w3', url: await refusingUrl() }, payloadOf('m1'), { fault: 'drop' })
    expect(triggered).toEqual([sent, failing])
    await outbox.idle()
    expect(triggered).toHaveLength(2)
  })

  test('triggers its webhook when it was acknowledged, as observed', async () => {
    const triggered: Sending[] = []
    const outbox = outboxWith({ profile: 'observed', triggered: (sending) => triggered.push(sending) })
    const sent = outbox.send({ id: 'w1', url: (await listenAndAnswer(200)).url }, payloadOf('m1'))
    const failed = outbox.send({ id: 'w2', url: (await listenAndAnswer(500)).url }, payloadOf('m1'))
    expect(triggered).toEqual([])
    await outbox.idle()
    expect(triggered).toEqual([outbox.get(sent.id)])
    expect(outbox.get(failed.id)?.state).toBe('failed')
  })

  test('of an event that was sent before is a new one, with the given behaviour', async () => {
    const { url, received } = await listenAndAnswer(200)
    const outbox = outboxWith()
    const first = outbox.send({ id: 'w1', url }, payloadOf('m1'))
    await outbox.idle()
    const second = outbox.send({ id: 'w1', url }, first.payload, { format: 'envelope' })
    await outbox.idle()

    expect(outbox.list().map(({ id }) => id)).toEqual([second.id, first.id])
    expect(second.payload).toEqual(first.payload)
    expect(JSON.parse(received[1]?.body ?? '')).toMatchObject({ data: { videoId: 'm1' } })
  })

  test.each(['ftp://127.0.0.1/?token=geheim', 'geheim'])(
    'to %s is rejected without showing the secret',
    async (url) => {
      const outbox = outboxWith()
      const invalidUrl = expect.objectContaining({
        code: 'invalid_option',
        message: expect.not.stringContaining('geheim'),
      })
      expect(() => outbox.send({ id: 'w1', url }, payloadOf('m1'))).toThrow(invalidUrl)
      await expect(outbox.check({ id: 'w1', url }, payloadOf('m1'))).rejects.toEqual(invalidUrl)
      expect(outbox.list()).toEqual([])
    },
  )
})

describe('the events for a webhook', () => {
  test('are delivered without waiting for one another', async () => {
    const held: { end(): void }[] = []
    const { url } = await listen((_, response) => {
      held.push(response)
      // None is answered before all have arrived.
      if (held.length === 10) for (const each of held) each.end()
    })
    const outbox = outboxWith()
    for (let i = 0; i < 10; i++) outbox.send({ id: 'w1', url }, payloadOf(`m${i}`))
    await outbox.idle()
    expect(outbox.list().map(({ state }) => state)).toEqual(new Array(10).fill('acknowledged'))
  })

  test('start in the order in which they were sent', async () => {
    const { url } = await listenAndAnswer(200)
    const started: string[] = []
    const changes = new Changes()
    const outbox = outboxWith({ changes })
    changes.subscribe(({ id }) => {
      const { state, payload } = outbox.get(id) as Sending
      if (state === 'delivering') started.push(payload.media_id)
    })
    const media = Array.from({ length: 200 }, (_, index) => `m${index}`)
    for (const each of media) outbox.send({ id: 'w1', url }, payloadOf(each))
    await outbox.idle()
    expect(started).toEqual(media)
  })

  test('go to all subscribers, or to none', async () => {
    const { url } = await listenAndAnswer(200)
    const outbox = outboxWith({ maxWaiting: 1 })
    const targets = [
      { id: 'w1', url },
      { id: 'w2', url, behaviour: { format: 'envelope' as const } },
    ]
    const sent = outbox.sendToAll(targets, payloadOf('m1'))
    expect(sent.map(({ webhookId, behaviour }) => [webhookId, behaviour])).toEqual([
      ['w1', {}],
      ['w2', { format: 'envelope' }],
    ])
    expect(() => outbox.sendToAll(targets, payloadOf('m2'))).toThrow(expect.objectContaining({ code: 'overloaded' }))
    expect(outbox.sendToAll([], payloadOf('m2'))).toEqual([])
    await outbox.idle()
    expect(outbox.list()).toHaveLength(2)
  })

  test('do not hold up the events for another webhook, even if the receiver is slow', async () => {
    const { url: slow } = await listen(() => {})
    const { url: fast } = await listenAndAnswer(200)
    const outbox = outboxWith()
    for (let i = 0; i < 200; i++) outbox.send({ id: 'slow', url: slow }, payloadOf(`m${i}`))
    const elapsed = ownTime()
    const sendings = Array.from({ length: 50 }, (_, i) => outbox.send({ id: 'fast', url: fast }, payloadOf(`f${i}`)))
    await expect.poll(() => sendings.map(({ id }) => outbox.get(id)?.state)).toEqual(new Array(50).fill('acknowledged'))
    // The other deliveries may take 3 s each.
    expect(elapsed()).toBeLessThan(2_500)
  })
})

describe('the fault', () => {
  const mediaOf = (received: readonly { body: string }[]) => received.map(({ body }) => mediaIdOf(body))

  test('drop sends nothing and ends the sending', async () => {
    const { url, received } = await listenAndAnswer(200)
    const outbox = outboxWith()
    expect(outbox.send({ id: 'w1', url }, payloadOf('m1'), { fault: 'drop' }).state).toBe('dropped')
    await outbox.idle()
    expect(received).toEqual([])
    expect(outbox.list()).toMatchObject([{ state: 'dropped', deliveries: [] }])
  })

  test('reorder lets the next event for the webhook overtake', async () => {
    const { url, received } = await listenAndAnswer(200)
    const outbox = outboxWith({ timeScale: 1 })
    const held = outbox.send({ id: 'w1', url }, payloadOf('m1'), { fault: 'reorder' })
    outbox.send({ id: 'w2', url }, payloadOf('other'))
    await expect.poll(() => mediaOf(received)).toEqual(['other'])
    expect(outbox.get(held.id)?.state).toBe('waiting')

    outbox.send({ id: 'w1', url }, payloadOf('m2'))
    await outbox.idle()
    expect(mediaOf(received)).toEqual(['other', 'm2', 'm1'])
  })

  test('reorder on every event swaps events in pairs, even if they arrive fast', async () => {
    const { url, received } = await listenAndAnswer(200)
    const outbox = outboxWith({ timeScale: 1 })
    const send = (media: string) => outbox.send({ id: 'w1', url }, payloadOf(media), { fault: 'reorder' })
    send('m1')
    send('m2')
    const { id } = send('m3')
    await expect.poll(() => mediaOf(received)).toEqual(['m2', 'm1'])
    expect(outbox.get(id)?.state).toBe('waiting')
    send('m4')
    await outbox.idle()
    expect(mediaOf(received)).toEqual(['m2', 'm1', 'm4', 'm3'])
  })

  test('reorder waits for the first delivery of the next event, even if that is rejected', async () => {
    const seen: string[] = []
    const { url } = await listen(async (request, response) => {
      seen.push(mediaIdOf(await text(request)))
      if (seen.length > 1) return response.end()
      // This is longer than an event is held back when no other one arrives.
      setTimeout(() => {
        seen.push('rejected')
        response.writeHead(500).end()
      }, 150)
    })
    const outbox = outboxWith({ timeScale: 0.005 })
    outbox.send({ id: 'w1', url }, payloadOf('m1'), { fault: 'reorder' })
    outbox.send({ id: 'w1', url }, payloadOf('m2'))
    await outbox.idle()
    expect(seen).toEqual(['m2', 'rejected', 'm1', 'm2'])
  })

  test('reorder sends the event when no other one arrives', async () => {
    const { url, received } = await listenAndAnswer(200)
    const outbox = outboxWith({ timeScale: 0 })
    outbox.send({ id: 'w1', url }, payloadOf('m1'), { fault: 'reorder' })
    await outbox.idle()
    expect(mediaOf(received)).toEqual(['m1'])
  })

  test('duplicate and concurrent-duplicate differ from retries in the record', async () => {
    const { url } = await listenAndAnswer(200)
    const outbox = outboxWith()
    for (const fault of ['duplicate', 'concurrent-duplicate'] as const) {
      const { id } = outbox.send({ id: 'w1', url }, payloadOf('m1'), { fault })
      await outbox.idle()
      expect(outbox.get(id)).toMatchObject({ state: 'acknowledged', deliveries: [{ attempt: 1 }, { copy: true }] })
    }
  })

  test('duplicate shows the state waiting, not retrying, before its copy', async () => {
    const { url } = await listenAndAnswer(503, 200)
    const changes = new Changes()
    const outbox = outboxWith({ changes })
    const states: unknown[] = []
    changes.subscribe(({ id }) => states.push(outbox.get(id)?.state))
    outbox.send({ id: 'w1', url }, payloadOf('m1'), { fault: 'duplicate' })
    await outbox.idle()
    const followed = ['waiting', 'delivering', 'retrying', 'delivering', 'waiting', 'delivering', 'acknowledged']
    expect(states).toEqual(followed)
  })

  test('lost-answer is followed by a retry in both profiles', async () => {
    for (const profile of ['documented', 'observed'] as const) {
      const { url } = await listenAndAnswer(200)
      const outbox = outboxWith({ profile })
      const { id } = outbox.send({ id: 'w1', url }, payloadOf('m1'), { fault: 'lost-answer' })
      await outbox.idle()
      expect(outcomesOf(outbox.get(id))).toEqual(['connection', 200])
    }
  })

  test('corrupt-body loses the event for a sender that does not retry after an answer', async () => {
    const { url } = await listenAndAnswer(400)
    const outbox = outboxWith({ profile: 'observed' })
    const { id } = outbox.send({ id: 'w1', url }, payloadOf('m1'), { fault: 'corrupt-body' })
    await outbox.idle()
    expect(outbox.get(id)?.state).toBe('failed')
    expect(outcomesOf(outbox.get(id))).toEqual(['status'])
  })
})

describe('the test delivery', () => {
  test('is made once, signed and in the format of the webhook, without its fault', async () => {
    const { url, received } = await listenAndAnswer(200)
    const triggered: string[] = []
    const outbox = outboxWith({ triggered: ({ id }) => triggered.push(id) })
    const sending = await outbox.check({ id: 'w1', url }, payloadOf('m1'), {
      format: 'envelope',
      sign: { scheme: 'header-token', secret: 'geheim', header: 'x-token' },
      fault: 'drop',
    })
    expect(sending).toMatchObject({ state: 'acknowledged', behaviour: { format: 'envelope' } })
    expect(sending.behaviour.fault).toBeUndefined()
    expect(received.map(({ request, body }) => [request.headers['x-token'], JSON.parse(body).data.videoId])).toEqual([
      ['geheim', 'm1'],
    ])
    expect(triggered).toEqual([sending.id])
    expect(outbox.list()).toEqual([sending])
  })

  test.each([
    ['documented', 302],
    ['documented', 404],
    ['documented', 503],
    ['observed', 201],
    ['observed', 204],
    ['observed', 302],
    ['observed', 404],
    ['observed', 503],
  ] as const)('with the profile %s fails with %d and is not retried', async (profile, status) => {
    const { url, received } = await listenAndAnswer(status)
    const { state, deliveries } = await outboxWith({ profile }).check({ id: 'w1', url }, payloadOf('m1'))
    expect(state).toBe('failed')
    expect(deliveries).toMatchObject([{ answer: { status }, failure: { reason: 'status' } }])
    expect(received).toHaveLength(1)
  })

  test.each([201, 204])('is acknowledged by %d, as documented', async (status) => {
    const { url } = await listenAndAnswer(status)
    expect((await outboxWith().check({ id: 'w1', url }, payloadOf('m1'))).state).toBe('acknowledged')
  })

  test('explains why another 2xx status fails, as observed', async () => {
    const { url } = await listenAndAnswer(202)
    const { deliveries } = await outboxWith({ profile: 'observed' }).check({ id: 'w1', url }, payloadOf('m1'))
    expect(deliveries[0]?.failure?.message).toBe('answered 202: a test delivery needs exactly 200')
  })

  test('may take one second', async () => {
    const { url } = await listen(() => {})
    const { state, deliveries } = await outboxWith().check({ id: 'w1', url }, payloadOf('m1'))
    expect(state).toBe('failed')
    expect(deliveries).toMatchObject([{ failure: { reason: 'timeout', message: 'no answer within 1000 ms' } }])
  })

  test('does not wait behind the events of its webhook', async () => {
    let stuck = 0
    const { url } = await listen(async (request, response) => {
      if (mediaIdOf(await text(request)) === 'test') response.end()
      else stuck += 1
    })
    const outbox = outboxWith()
    for (let i = 0; i < 100; i++) outbox.send({ id: 'w1', url }, payloadOf('m1'))
    await expect.poll(() => stuck).toBeGreaterThan(10)
    expect((await outbox.check({ id: 'w1', url }, payloadOf('test'))).state).toBe('acknowledged')
  })
})

test('an outbox is idle when it has sent nothing, and again when every sending has ended', async () => {
  const outbox = outboxWith()
  await outbox.idle()
  const { id } = outbox.send({ id: 'w1', url: await refusingUrl() }, payloadOf('m1'))
  await outbox.idle()
  expect(outbox.get(id)?.state).toBe('failed')
  await outbox.idle()
})
