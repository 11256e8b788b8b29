import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { lifecycleKey, type MediaEvent, memoryInbox, type Overdue } from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { recordingLogger } from '../support/recording-logger.ts'
import { answeringInbox, listening, receiverWith } from './listening-receiver.ts'

const found = { type: 'encoding.finished', mediaId: 'm1', qualities: ['360p', '720p'] } as const

/** A receiver that keeps every event it handles. */
function keeping(options: Parameters<typeof receiverWith>[0] = {}) {
  const events: MediaEvent[] = []
  const receiver = receiverWith(options).on(
    ['encoding.finished', 'encoding.failed'],
    (event) => void events.push(event),
  )
  return { receiver, events }
}

const handled = (receiver: ReturnType<typeof receiverWith>) => receiver.close()

describe('receiver.accept', () => {
  test('handles what a look-up found like the event of a delivery', async () => {
    const { receiver, events } = keeping()
    expect(await receiver.accept({ ...found, title: 'Holiday.mp4' })).toBe('accepted')
    await handled(receiver)
    expect(events).toMatchObject([{ ...found, title: 'Holiday.mp4', source: 'lookup', test: false, issues: [] }])
  })

  test('retries the handlers, and keeps a dead letter that a replay handles', async () => {
    let failing = true
    const receiver = receiverWith({ retry: { attempts: 2, baseMs: 1 } }).on('encoding.finished', function publish() {
      if (failing) throw new Error('failed')
    })
    await receiver.accept(found)
    await expect
      .poll(() => receiver.inbox.deadLetters.list())
      .toMatchObject([{ attempts: 2, event: { source: 'lookup' } }])
    failing = false
    const [dead] = await receiver.inbox.deadLetters.list()
    expect(await receiver.inbox.deadLetters.replay(dead?.key ?? '')).toBe(true)
    await expect.poll(() => receiver.inbox.deadLetters.list()).toEqual([])
  })

  test('accepts an event that it found before once', async () => {
    const { receiver, events } = keeping()
    const outcomes = [await receiver.accept(found), await receiver.accept({ ...found, title: null })]
    expect(outcomes).toEqual(['accepted', 'duplicate'])
    await handled(receiver)
    expect(events).toHaveLength(1)
  })

  test('ignores an event that nothing handles, and one of the media item of test deliveries', async () => {
    const { receiver, events } = keeping()
    expect(await receiver.accept({ ...found, type: 'file.received' })).toBe('ignored')
    expect(await receiver.accept({ ...found, mediaId: '00000000-0000-0000-0000-000000000000' })).toBe('ignored')
    await handled(receiver)
    expect(events).toEqual([])
  })

  test('logs what it accepts, and reports no delivery', async () => {
    const { lines, deliveries, handlings, attempts, options } = listening()
    const { receiver } = keeping(options)
    await receiver.accept({ ...found, title: 'secret title' })
    await receiver.accept({ ...found, title: 'secret title' })
    await handled(receiver)
    const key = handlings[0]?.key
    expect(lines.filter(({ message }) => message.startsWith('look-up'))).toEqual([
      {
        level: 'info',
        message: 'look-up accepted',
        details: { outcome: 'accepted', key, type: found.type, mediaId: 'm1' },
      },
      {
        level: 'debug',
        message: 'look-up duplicate',
        details: { outcome: 'duplicate', key, type: found.type, mediaId: 'm1' },
      },
    ])
    expect(JSON.stringify(lines)).not.toContain('secret')
    expect([deliveries.length, handlings.length, attempts.length]).toEqual([0, 1, 1])
  })

  test('passes waitUntil on to the inbox', async () => {
    const { receiver } = keeping()
    const ends: Promise<unknown>[] = []
    await receiver.accept(found, { waitUntil: (promise) => void ends.push(promise) })
    expect(await Promise.all(ends)).toEqual(['handled'])
  })

  test('is waited for by close, and rejects after it', async () => {
    let store = () => {}
    const closed: string[] = []
    const inbox = answeringInbox(() => new Promise((resolve) => (store = () => resolve('accepted'))), {
      close: async () => {
        closed.push('inbox')
        return { unfinished: [] }
      },
    })
    const { receiver } = keeping({ inbox })
    const accepting = receiver.accept(found)
    await new Promise(setImmediate)
    const closing = receiver.close()
    await new Promise(setImmediate)
    expect(closed).toEqual([])
    store()
    expect(await accepting).toBe('accepted')
    await closing
    await expect(receiver.accept(found)).rejects.toMatchObject({ code: 'closing' })
  })
})

describe('receiver.accept rejects', () => {
  test.each([
    ['malformed', {}, { ...found, mediaId: '' }],
    ['overloaded', { inbox: answeringInbox(() => 'overloaded') }, found],
    ['unavailable', { inbox: answeringInbox(() => Promise.reject(new Error('unreachable'))) }, found],
    ['internal', { eventKey: () => '' }, found],
    ['invalid_option', { ack: 'handled' as const }, found],
  ])('with %s', async (code, options, event) => {
    await expect(keeping(options).receiver.accept(event)).rejects.toMatchObject({ name: 'WebhookError', code })
  })
})

describe('the event key of a look-up', () => {
  test('is the one of the function, which sees a delivery without headers and the source', async () => {
    const eventKey = vi.fn((event: MediaEvent, delivery: { headers: { get(name: string): string | null } }) => {
      return delivery.headers.get('x-event-id') ?? `${event.source} of ${event.mediaId}`
    })
    const { receiver, events } = keeping({ eventKey })
    await receiver.accept(found)
    await handled(receiver)
    expect(events).toMatchObject([{ key: 'lookup of m1' }])
  })

  test('is the default one if deliveries have theirs in a header', async () => {
    const { receiver } = keeping({ eventKey: { header: 'x-event-id' } })
    expect([await receiver.accept(found), await receiver.accept(found)]).toEqual(['accepted', 'duplicate'])
  })

  const late = samplePayload('encoding.finished', { media_id: 'm1', qualities: '360p,720p' })

  test('makes the late delivery another event by default', async () => {
    const { receiver, events } = keeping()
    await receiver.accept(found)
    expect((await deliver(receiver, late)).outcome).toBe('accepted')
    await handled(receiver)
    expect(events.map(({ source }) => source)).toEqual(['lookup', 'delivery'])
  })

  test.each([
    ['after', ['accepted', 'duplicate']],
    ['before', ['duplicate', 'accepted']],
  ])('makes the delivery %s it a duplicate with lifecycleKey', async (order, outcomes) => {
    const { receiver, events } = keeping({ eventKey: lifecycleKey })
    const lookUp = () => receiver.accept(found)
    const receive = async () => (await deliver(receiver, late)).outcome
    const first = await (order === 'after' ? lookUp() : receive())
    const second = await (order === 'after' ? receive() : lookUp())
    expect(order === 'after' ? [first, second] : [second, first]).toEqual(outcomes)
    await handled(receiver)
    expect(events).toHaveLength(1)
  })
})

describe('overdue.accept', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: Date.parse('2026-03-01T12:00:00Z') })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  const rule = { then: ['encoding.finished', 'encoding.failed'], within: '2 h' } as const
  const received = () => samplePayload('file.received', { media_id: 'm1', emitted_at: new Date().toISOString() })

  test('makes what a look-up found the missing event, whose handlers run after this one', async () => {
    const { receiver, events } = keeping({ eventKey: lifecycleKey })
    const order: string[] = []
    receiver.on('encoding.finished', () => void order.push('finished'))
    receiver.expect('file.received', rule, async (overdue) => {
      order.push(await overdue.accept({ type: 'encoding.finished', qualities: ['360p', '720p'] }), 'looked up')
    })
    await deliver(receiver, received())
    await vi.advanceTimersByTimeAsync(7_300_000)
    expect(events).toMatchObject([{ ...found, source: 'lookup' }])
    expect(order).toEqual(['accepted', 'looked up', 'finished'])
    const late = samplePayload('encoding.finished', { media_id: 'm1', qualities: '360p,720p' })
    expect((await deliver(receiver, late)).outcome).toBe('duplicate')
  })

  test('ends the other expectations of its media item, and only those', async () => {
    const { receiver } = keeping()
    const alerts: Overdue[] = []
    receiver.expect('file.received', rule, async (overdue) => {
      if (overdue.mediaId === 'm1') await overdue.accept({ type: 'encoding.failed' })
    })
    receiver.expect('file.received', { ...rule, within: '3 h' }, (overdue) => void alerts.push(overdue))
    await deliver(receiver, received())
    await deliver(receiver, { ...received(), media_id: 'm2' })
    await vi.advanceTimersByTimeAsync(4 * 3_600_000)
    expect(alerts.map(({ mediaId }) => mediaId)).toEqual(['m2'])
  })

  test('finds the event once, however often the handler runs', async () => {
    const { receiver, events } = keeping({ retry: { attempts: 3, baseMs: 1 } })
    const outcomes: string[] = []
    receiver.expect('file.received', rule, async (overdue, { attempt }) => {
      outcomes.push(await overdue.accept({ type: 'encoding.finished' }))
      if (attempt < 3) throw new Error('failed')
    })
    await deliver(receiver, received())
    await vi.advanceTimersByTimeAsync(7_300_000)
    expect(outcomes).toEqual(['accepted', 'duplicate', 'duplicate'])
    expect(events).toHaveLength(1)
  })

  test('fails the run, which is repeated, if the inbox cannot take the event', async () => {
    const { logger, lines } = recordingLogger('error')
    const { receiver } = keeping({ logger, retry: { attempts: 1 }, inbox: memoryInbox() })
    receiver.expect('file.received', rule, (overdue) => overdue.accept({ type: 'encoding.done' } as never))
    await deliver(receiver, received())
    await vi.advanceTimersByTimeAsync(7_300_000)
    expect(lines).toMatchObject([{ details: { err: { code: 'malformed' } } }])
  })
})
