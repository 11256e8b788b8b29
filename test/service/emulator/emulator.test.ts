import type { RequestListener } from 'node:http'
import { describe, expect, test } from 'vitest'
import type { Profile } from '../../../src/service/emulator/index.ts'
import { serveWebhook } from '../../support/serve.ts'
import { answering, api, emulate, receive, subscribe, webhookOf } from './started-emulator.ts'

const life = ['file.received', 'encoding.started', 'partial.finished', 'partial.finished', 'encoding.finished']

describe('a media item', () => {
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
    await subscribe(emulator, await serveWebhook(() => {}), ['file_received'])
    emulator.addMedia()
    expect(() => emulator.addMedia()).toThrow(expect.objectContaining({ code: 'overloaded' }))
  })
})

describe('a webhook', () => {
  test('is sent an event again until its receiver acknowledges it', async () => {
    const emulator = await emulate()
    await subscribe(emulator, await serveWebhook(answering(503, 500, 204)), ['file_received'])
    emulator.addMedia()
    await emulator.settled()
    const [sending] = emulator.sendings()
    expect(sending?.state).toBe('acknowledged')
    expect(sending?.deliveries.map(({ answer }) => answer?.status)).toEqual([503, 500, 204])
  })

  test.each([
    ['documented', 200, true],
    ['documented', 500, true],
    ['observed', 200, true],
    ['observed', 500, false],
  ] as const)('with the profile %s, whose receiver answers %d: its last trigger is recorded: %s', async (...row) => {
    const [profile, status, isRecorded] = row
    const emulator = await emulate({ profile })
    const url = await serveWebhook(answering(status))
    const [sent, checked] = [
      await subscribe(emulator, url, ['file_received']),
      await subscribe(emulator, url, ['encoding_failed']),
    ]
    expect(sent.last_triggered_at).toBeNull()
    emulator.addMedia()
    await emulator.settled()
    expect((await webhookOf(emulator, sent)).last_triggered_at !== null).toBe(isRecorded)
    expect((await webhookOf(emulator, checked)).last_triggered_at).toBeNull()
    await api(emulator, 'POST', `/webhooks/check/${checked.id}`)
    expect((await webhookOf(emulator, checked)).last_triggered_at !== null).toBe(isRecorded)
  })

  test('is checked with a test delivery', async () => {
    const emulator = await emulate()
    const receiver = await receive()
    const webhook = await subscribe(emulator, receiver.url, ['encoding_failed'])
    expect((await api(emulator, 'POST', `/webhooks/check/${webhook.id}`)).status).toBe(200)
    expect(receiver.events).toMatchObject([{ type: 'encoding.started', test: true }])
  })

  test.each<[string, Profile, RequestListener, number]>([
    ['answers with another status', 'documented', answering(418), 418],
    ['answers 204, as observed,', 'observed', answering(204), 400],
    ['never answers', 'documented', () => {}, 400],
  ])('fails its check when its receiver %s', async (_, profile, listener, status) => {
    const emulator = await emulate({ profile })
    const webhook = await subscribe(emulator, await serveWebhook(listener))
    const checked = await api(emulator, 'POST', `/webhooks/check/${webhook.id}`)
    expect(checked).toMatchObject({
      status,
      body: { status: 'fail', message: expect.stringContaining('test delivery') },
    })
  })
})
