import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { OpenExpectation } from '../../../src/index.ts'
import { encodePayload, samplePayload } from '../../../src/testing/index.ts'
import { findRuntime } from '../../support/find-runtime.ts'
import { App, type AppOptions } from './app.ts'
import { deliver, firstRuns, mediaIn, post, shards } from './sharded-media.ts'

const binary = findRuntime('workerd')

const fileReceived = (mediaId: string) => encodePayload(samplePayload('file.received', { media_id: mediaId }))

// An alarm wakes an object after 5 s at the latest.

describe.skipIf(binary === undefined)('an inbox in Durable Objects', () => {
  let app: App
  const make = async (options: AppOptions = {}) => {
    app = await App.make(binary as string, { shards, ...options })
  }
  beforeEach(() => make({ isolates: 3 }))
  afterEach(() => app.remove())

  test('handles an event once that is delivered to several isolates at the same time', async () => {
    await app.start()
    const [mediaId = ''] = mediaIn(0)
    const urls = Array.from({ length: 30 }, (_, index) => app.urls[index % 3])
    const answers = await Promise.all(urls.map((url) => deliver(url, mediaId)))
    expect(answers.map(({ http }) => http)).toEqual(urls.map(() => 200))
    expect(answers.filter(({ status }) => status === 'accepted')).toHaveLength(1)
    await expect.poll(() => app.unfinished()).toBe(0)
    expect(firstRuns(app, mediaId)).toEqual(['done'])
    expect(await app.ask('/written')).toEqual([mediaId])
  })

  test('continues without a delivery after an object was evicted in the middle', async () => {
    await app.start()
    const [running = '', waiting = ''] = mediaIn(2, 2)
    app.evidence.holds = ({ key }) => key === running
    await deliver(app.urls[0], running)
    await expect.poll(() => firstRuns(app, running)).toEqual(['cut off'])
    await deliver(app.urls[1], waiting)
    await app.ask('/abort?key=2')
    app.evidence.release()
    await expect.poll(() => firstRuns(app, running)).toEqual(['cut off', 'done'])
    await expect.poll(() => firstRuns(app, waiting)).toContain('done')
  })

  test('continues without a delivery after SIGKILL, with events that ran, waited or were to be retried', async () => {
    await app.start()
    const media = mediaIn(0, 0, 1, 3)
    const [ran = ''] = media
    app.evidence.holds = ({ attempt, handler }) => attempt === 1 || handler === 'first'
    for (const mediaId of [ran, ...media]) await deliver(app.urls[0], mediaId)
    for (const mediaId of media) await expect.poll(() => firstRuns(app, mediaId)).toEqual(['cut off'])
    await app.stop('SIGKILL')
    app.evidence.release()
    await app.start()
    for (const mediaId of media) await expect.poll(() => firstRuns(app, mediaId)).toEqual(['cut off', 'done'])
    await expect.poll(() => app.ask<string[]>('/written')).toHaveLength(4)
  })

  test('retries in an object, in the order of the media, and remembers keys over a restart', async () => {
    await app.start()
    const [mediaId = ''] = mediaIn(1)
    expect((await deliver(app.urls[0], mediaId, { title: 'fails once' })).status).toBe('accepted')
    await expect.poll(() => firstRuns(app, mediaId)).toEqual(['failed', 'done'])
    await expect.poll(() => app.unfinished()).toBe(0)
    await app.stop('SIGKILL')
    await app.start()
    expect((await deliver(app.urls[0], mediaId, { title: 'fails once' })).status).toBe('duplicate')
  })

  test('has an alarm while an event is left, and none afterwards', async () => {
    await app.start()
    const [mediaId = ''] = mediaIn(3)
    expect(await app.ask('/alarm?key=3')).toBe(null)
    app.evidence.holds = () => true
    await deliver(app.urls[0], mediaId)
    expect(await app.ask('/alarm?key=3')).toBeGreaterThan(Date.now())
    app.evidence.release()
    await expect.poll(() => app.ask('/alarm?key=3')).toBe(null)
  })

  test('hands over what is overdue after SIGKILL, without a delivery, in the object of its media item', async () => {
    // Long enough for a busy machine to accept the events.
    const withinMs = 4_000
    await app.start({ WITHIN: `${withinMs}` })
    const [late = '', ended = '', other = ''] = mediaIn(0, 0, 3)
    const begin = (mediaId: string) => post(app.urls[0] as string, fileReceived(mediaId))
    for (const mediaId of [late, ended, other]) expect((await begin(mediaId)).http).toBe(200)
    await deliver(app.urls[1], ended)
    await expect.poll(() => app.evidence.of(ended)).toHaveLength(4)
    const open = await app.ask<OpenExpectation[]>('/expected')
    expect(open.map(({ rule, mediaId }) => [rule, mediaId])).toEqual([
      ['encoded', late],
      ['encoded', other],
    ])
    await app.stop('SIGKILL')
    await new Promise((resolve) => setTimeout(resolve, withinMs))
    await app.start()
    const overdue = (mediaId: string) => app.evidence.of(mediaId).filter(({ handler }) => handler === 'overdue')
    for (const mediaId of [late, other])
      await expect.poll(() => overdue(mediaId)).toMatchObject([{ process: app.name, failed: false }])
    await expect.poll(() => app.ask('/alarm?key=0')).toBe(null)
    expect(await app.ask('/overdue')).toEqual([late, other])
    expect(await app.ask('/stats')).not.toHaveProperty('expected')
  })

  test('makes an event a dead letter that ends its object each time, and handles the others', async () => {
    await app.start()
    const [crashing = '', other = ''] = mediaIn(2, 2)
    await deliver(app.urls[0], crashing, { title: 'aborts' })
    await expect.poll(() => firstRuns(app, crashing)).not.toEqual([])
    // Each question wakes the object, which the alarm would do later.
    const deadLetters = () => app.ask<{ failures: unknown }[]>('/dead-letters').catch(() => [])
    const delivered = expect.poll(() => deliver(app.urls[0], other).catch(() => ({ http: 0 })))
    await delivered.toMatchObject({ http: 200 })
    await expect
      .poll(deadLetters)
      .toMatchObject([{ failures: [{ handler: 'none', message: 'the process crashed 10 times while handling it' }] }])
    await expect.poll(() => firstRuns(app, other)).toContain('done')
  })

  test('lists, replays and discards the dead letters of all objects', async () => {
    await app.start({ ATTEMPTS: '1' })
    const media = mediaIn(0, 1, 2, 3)
    type Letter = { key: string; event: { mediaId: string } }
    const letters = () => app.ask<Letter[]>('/dead-letters')
    for (const [index, mediaId] of media.entries()) {
      await deliver(app.urls[0], mediaId, { title: 'fails always' })
      await expect.poll(letters).toHaveLength(index + 1)
    }
    expect((await letters()).map(({ event }) => event.mediaId)).toEqual(media.toReversed())
    const [newest, second] = (await letters()).map(({ key }) => encodeURIComponent(key))
    expect(await app.ask(`/discard?key=${newest}`)).toBe(true)
    expect(await app.ask(`/discard?key=${newest}`)).toBe(false)
    expect(await app.ask(`/replay?key=${newest}`)).toBe(false)
    expect(await app.ask(`/replay?key=${second}`)).toBe(true)
    await expect.poll(() => firstRuns(app, media[2] as string)).toEqual(['failed', 'failed'])
    await expect.poll(letters).toHaveLength(3)
  })

  test('keeps an unreadable delivery once, and keeps it when it still cannot be parsed', async () => {
    await app.start()
    const body = new TextEncoder().encode('{"type":')
    for (const url of app.urls) expect((await post(url, body)).http).toBe(400)
    type Letter = { key: string; unreadable: { reason: string } }
    const [letter, ...more] = await app.ask<Letter[]>('/dead-letters')
    expect([letter?.unreadable.reason, more]).toEqual(['the body is not JSON', []])
    await expect(app.ask(`/replay?key=${letter?.key}`)).rejects.toThrow('the body is not JSON')
    expect(await app.ask(`/discard?key=${encodeURIComponent(letter?.key ?? '')}`)).toBe(true)
  })

  test('answers 503 while objects cannot make their receiver, and loses nothing', async () => {
    await app.start()
    const [mediaId = '', next = ''] = mediaIn(1, 1)
    app.evidence.holds = () => true
    await deliver(app.urls[0], mediaId)
    await expect.poll(() => firstRuns(app, mediaId)).toEqual(['cut off'])
    await app.stop('SIGKILL')
    await app.start({ BROKEN: 'yes' })
    expect(await deliver(app.urls[0], next)).toMatchObject({ http: 503, code: 'unavailable' })
    await app.stop('SIGKILL')
    app.evidence.release()
    await app.start()
    expect((await deliver(app.urls[0], next)).status).toBe('accepted')
    await expect.poll(() => firstRuns(app, mediaId)).toEqual(['cut off', 'done'])
  })
})
