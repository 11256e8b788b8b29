import type { RequestListener } from 'node:http'
import { describe, expect, test } from 'vitest'
import { answering, api, emulate, receive, serve, subscribe, webhookOf } from './fixture.ts'

const life = ['file.received', 'encoding.started', 'partial.finished', 'partial.finished', 'encoding.finished']

describe('a media', () => {
  test('sends all its events to a real receiver', async () => {
    const emulator = await emulate()
    const receiver = await receive()
    const webhook = await subscribe(emulator, receiver.url)
    const { id } = emulator.addMedia({ title: 'Holiday <1>.mp4', qualities: ['360p', '1080p'] })
    await emulator.settled()

    expect(receiver.types()).toEqual(life.toSorted())
    expect(receiver.events.every(({ mediaId, title }) => mediaId === id && title === 'Holiday <1>.mp4')).toBe(true)
    const end = receiver.events.find(({ type }) => type === 'encoding.finished')
    expect(end).toMatchObject({ qualities: ['360p', '1080p'], status: 'done' })
    const sendings = emulator.sendings()
    expect(sendings.map(({ payload }) => payload.type)).toEqual(life.toReversed())
    expect(sendings.every(({ state, webhookId }) => state === 'acknowledged' && webhookId === webhook.id)).toBe(true)
    expect(Date.parse((await webhookOf(emulator, webhook)).last_triggered_at ?? '')).toBeGreaterThan(0)
  })

  test('that fails ends with encoding.failed', async () => {
    const emulator = await emulate()
    const receiver = await receive()
    await subscribe(emulator, receiver.url)
    emulator.addMedia({ qualities: ['360p'], fails: true })
    await emulator.settled()
    expect(receiver.types()).toEqual(['encoding.failed', 'encoding.started', 'file.received'])
  })

  test('sends its events to subscribed webhooks only', async () => {
    const emulator = await emulate()
    const [early, late] = [await receive(), await receive()]
    await subscribe(emulator, early.url, ['file_received', 'encoding_started'])
    const webhook = await subscribe(emulator, late.url, ['partial_finished', 'encoding_finished'])
    emulator.addMedia({ qualities: ['360p'] })
    await emulator.settled()
    expect(early.types()).toEqual(['encoding.started', 'file.received'])
    expect(late.types()).toEqual(['encoding.finished', 'partial.finished'])

    await api(emulator, 'PATCH', `/webhooks/${webhook.id}`, { partial_finished: false })
    emulator.addMedia({ qualities: ['360p'] })
    await emulator.settled()
    expect(late.types()).toEqual(['encoding.finished', 'encoding.finished', 'partial.finished'])
  })

  test('is rejected when its properties are invalid', async () => {
    const emulator = await emulate()
    expect(() => emulator.addMedia({ qualities: [] })).toThrow(expect.objectContaining({ code: 'invalid_option' }))
  })

  test('is rejected while too many events are unfinished', async () => {
    const emulator = await emulate({ maxWaiting: 1 })
    await subscribe(emulator, await serve(() => {}), ['file_received'])
    emulator.addMedia()
    expect(() => emulator.addMedia()).toThrow(expect.objectContaining({ code: 'overloaded' }))
  })
})

describe('a webhook', () => {
  test('is sent an event again until its receiver acknowledges it, and records that time', async () => {
    const emulator = await emulate()
    const webhook = await subscribe(emulator, await serve(answering(503, 500, 204)), ['file_received'])
    expect(webhook.last_triggered_at).toBeNull()
    emulator.addMedia()
    await emulator.settled()
    const [sending] = emulator.sendings()
    expect(sending?.state).toBe('acknowledged')
    expect(sending?.deliveries.map(({ answer }) => answer?.status)).toEqual([503, 500, 204])
    expect((await webhookOf(emulator, webhook)).last_triggered_at).not.toBeNull()
  })

  test('whose receiver acknowledges nothing records no time', async () => {
    const emulator = await emulate({ profile: 'observed' })
    const webhook = await subscribe(emulator, await serve(answering(500)), ['file_received'])
    emulator.addMedia()
    await emulator.settled()
    expect(emulator.sendings()).toMatchObject([{ state: 'failed', deliveries: [{ answer: { status: 500 } }] }])
    expect((await webhookOf(emulator, webhook)).last_triggered_at).toBeNull()
  })

  test('is checked with a test delivery', async () => {
    const emulator = await emulate()
    const receiver = await receive()
    const webhook = await subscribe(emulator, receiver.url, ['encoding_failed'])
    expect((await api(emulator, 'POST', `/webhooks/check/${webhook.id}`)).status).toBe(200)
    expect(receiver.events).toMatchObject([{ type: 'encoding.started', test: true }])
    expect((await webhookOf(emulator, webhook)).last_triggered_at).not.toBeNull()
  })

  test.each<[string, RequestListener, number]>([
    ['answers with another status', answering(418), 418],
    ['answers 204', answering(204), 400],
    ['never answers', () => {}, 400],
  ])('fails its check when its receiver %s', async (_, listener, status) => {
    const emulator = await emulate()
    const webhook = await subscribe(emulator, await serve(listener))
    const checked = await api(emulator, 'POST', `/webhooks/check/${webhook.id}`)
    expect(checked).toMatchObject({
      status,
      body: { status: 'fail', message: expect.stringContaining('test delivery') },
    })
    expect((await webhookOf(emulator, webhook)).last_triggered_at).toBeNull()
  })
})
