import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { defineInbox, defineStore, lruStore, memoryInbox, type Overdue } from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { recordingLogger } from '../support/recording-logger.ts'
import { receiverWith } from './listening-receiver.ts'

const noon = Date.parse('2026-03-01T12:00:00Z')
const within = '2 h'
const twoHours = 7_200_000

/** The payload of an event of one media item, emitted so many minutes after noon. */
const at = (minutes: number, type: Parameters<typeof samplePayload>[0], more = {}) =>
  samplePayload(type, { emitted_at: new Date(noon + minutes * 60_000).toISOString(), media_id: 'm1', ...more })

/** A receiver that expects the end of an encoding within two hours of its file. */
function watching(options: Parameters<typeof receiverWith>[0] = {}) {
  const reported: Overdue[] = []
  const receiver = receiverWith(options).expect(
    'file.received',
    { then: ['encoding.finished', 'encoding.failed'], within, name: 'encoded' },
    (overdue) => void reported.push(overdue),
  )
  return { receiver, reported }
}

describe('receiver.expect', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: noon })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  test('reports an event that does not come, with the event that began the wait', async () => {
    const { receiver, reported } = watching()
    expect((await deliver(receiver, at(0, 'file.received'))).outcome).toBe('accepted')
    await vi.advanceTimersByTimeAsync(twoHours - 1)
    expect(reported).toEqual([])
    await vi.advanceTimersByTimeAsync(100)
    expect(reported).toMatchObject([
      {
        rule: 'encoded',
        mediaId: 'm1',
        dueAt: new Date(noon + twoHours),
        event: { type: 'file.received', mediaId: 'm1' },
      },
    ])
    await vi.advanceTimersByTimeAsync(twoHours)
    expect(reported).toHaveLength(1)
  })

  test('reports it although the sender has sent an event whose id is that of the report', async () => {
    const { receiver, reported } = watching({ eventKey: { header: 'x-event-id' } })
    receiver.on('encoding.started', () => {})
    const send = async (id: string, type: Parameters<typeof samplePayload>[0]) =>
      (await deliver(receiver, at(0, type), { headers: { 'x-event-id': id } })).outcome
    expect(await send('overdue:encoded:one', 'encoding.started')).toBe('accepted')
    expect(await send('one', 'file.received')).toBe('accepted')
    await vi.advanceTimersByTimeAsync(twoHours + 100)
    expect(reported).toHaveLength(1)
  })

  test.each([
    ['after', [at(0, 'file.received'), at(1, 'encoding.failed')]],
    ['before', [at(1, 'encoding.finished'), at(0, 'file.received')]],
  ])('reports nothing if one of the expected events comes %s it', async (_, payloads) => {
    const { receiver, reported } = watching()
    for (const payload of payloads) expect((await deliver(receiver, payload)).outcome).toBe('accepted')
    await vi.advanceTimersByTimeAsync(2 * twoHours)
    expect(reported).toEqual([])
  })

  test('drops a report while one of its key is being handled, since a small store forgets keys early', async () => {
    const reported: string[] = []
    const receiver = receiverWith({
      inbox: memoryInbox({ store: lruStore({ max: 1 }) }),
      handlerTimeoutMs: 4 * twoHours,
    }).expect('file.received', { then: 'encoding.finished', within, name: 'encoded' }, async ({ mediaId }) => {
      reported.push(mediaId)
      await new Promise((resolve) => setTimeout(resolve, twoHours))
    })
    await deliver(receiver, at(0, 'file.received'))
    await deliver(receiver, at(1, 'file.received', { media_id: 'm2' }))
    await vi.advanceTimersByTimeAsync(1_000)
    expect((await deliver(receiver, at(0, 'file.received'))).outcome).toBe('accepted')
    await vi.advanceTimersByTimeAsync(twoHours + 100)
    expect(reported).toEqual(['m1', 'm2'])
    expect(await receiver.inbox.stats()).toMatchObject({ running: 2, waiting: 0 })
    await vi.advanceTimersByTimeAsync(2 * twoHours)
    expect(reported).toEqual(['m1', 'm2'])
    expect(await receiver.close()).toEqual({ unfinished: [] })
  })

  test.each([
    ['a:b', 'c'],
    ['a', 'b:c'],
  ])('keys its reports without ambiguity (rule %s)', async (name, key) => {
    const keys: string[] = []
    const receiver = receiverWith({ eventKey: () => key }).expect(
      'file.received',
      { then: 'encoding.finished', within, name },
      (_overdue, context) => void keys.push(context.key),
    )
    await deliver(receiver, at(0, 'file.received'))
    await vi.advanceTimersByTimeAsync(twoHours + 100)
    expect(keys).toEqual([`overdue:${encodeURIComponent(name)}:${key}`])
  })

  test('a test delivery begins no wait', async () => {
    const { receiver } = watching()
    receiver.expect('encoding.started', { then: 'encoding.finished', within, name: 'started' }, () => {})
    receiver.on('encoding.started', () => {}, { tests: true })
    const test = { media_id: '00000000-0000-0000-0000-000000000000', title: 'Test.mp4', qualities: '720p', status: '' }
    await deliver(receiver, at(0, 'encoding.started', test))
    expect((await receiver.inbox.stats()).expected).toBeUndefined()
    await deliver(receiver, at(0, 'encoding.started'))
    expect((await receiver.inbox.stats()).expected).toBe(1)
  })

  test('a look-up is about the media item that is overdue, whatever it says, and the event is frozen', async () => {
    const seen: string[] = []
    const frozen: boolean[] = []
    const { receiver } = watching()
    receiver.on('encoding.failed', ({ mediaId }) => void seen.push(mediaId))
    receiver.expect('file.received', { then: 'encoding.started', within, name: 'started' }, async (overdue) => {
      frozen.push(Object.isFrozen(overdue.event))
      await overdue.accept({ type: 'encoding.failed', mediaId: 'another' } as never)
    })
    await deliver(receiver, at(0, 'file.received'))
    await vi.advanceTimersByTimeAsync(twoHours + 200)
    expect(seen).toEqual(['m1'])
    expect(frozen).toEqual([true])
  })

  test('reports nothing twice if the sender repeats the event', async () => {
    const { receiver, reported } = watching()
    await deliver(receiver, at(0, 'file.received'))
    await vi.advanceTimersByTimeAsync(twoHours + 100)
    expect((await deliver(receiver, at(0, 'file.received'))).outcome).toBe('duplicate')
    await vi.advanceTimersByTimeAsync(twoHours + 100)
    expect(reported).toHaveLength(1)
  })

  test('ignores the events of other media items, and test deliveries', async () => {
    const { receiver, reported } = watching()
    await deliver(receiver, at(0, 'file.received'))
    await deliver(receiver, at(1, 'encoding.finished', { media_id: 'm2' }))
    const nil = '00000000-0000-0000-0000-000000000000'
    expect((await deliver(receiver, at(1, 'file.received', { media_id: nil }))).outcome).toBe('test')
    await vi.advanceTimersByTimeAsync(twoHours + 100)
    expect(reported.map(({ mediaId }) => mediaId)).toEqual(['m1'])
  })

  test('retries its handler like any other, and keeps a dead letter', async () => {
    const attempts: number[] = []
    const receiver = receiverWith({ retry: { attempts: 2, baseMs: 1 } })
    receiver.expect('file.received', { then: 'encoding.finished', within: 1_000 }, function late(_, { attempt }) {
      attempts.push(attempt)
      throw new Error('failed')
    })
    const frozen: boolean[] = []
    receiver.onError((_, { event }) => void frozen.push(Object.isFrozen(event)))
    await deliver(receiver, at(0, 'file.received'))
    await vi.advanceTimersByTimeAsync(2_000)
    expect(attempts).toEqual([1, 2])
    expect(frozen).toEqual([true, true])
    const [dead] = await receiver.inbox.deadLetters.list()
    expect(dead).toMatchObject({ attempts: 2, failures: [{ handler: 'late', message: 'Error: failed' }] })
    expect(await receiver.inbox.deadLetters.replay(dead?.key as string)).toBe(true)
    await vi.advanceTimersByTimeAsync(2_000)
    expect(attempts).toEqual([1, 2, 1, 2])
  })

  test('runs no handler of an event for what is overdue, also if a sender makes up its type', async () => {
    const { receiver, reported } = watching()
    const types: string[] = []
    receiver.onAny(({ type }) => void types.push(type))
    await deliver(receiver, at(0, 'file.received'))
    const forged = { ...at(0, 'file.received'), type: 'expectation.overdue', overdue: { rule: 'encoded' } }
    await deliver(receiver, JSON.stringify(forged))
    await vi.advanceTimersByTimeAsync(twoHours + 100)
    expect(types).toEqual(['file.received', 'expectation.overdue'])
    expect(reported).toHaveLength(1)
  })

  test('acknowledges an event that only an expectation is about, and handles it without a handler', async () => {
    const { logger, lines } = recordingLogger('info')
    const { receiver } = watching({ logger })
    const { outcome, handled } = await deliver(receiver, at(0, 'file.received'))
    await vi.advanceTimersByTimeAsync(100)
    await handled
    expect(outcome).toBe('accepted')
    expect(receiver.handles('encoding.failed')).toBe(true)
    expect(receiver.handles('encoding.started')).toBe(false)
    expect(lines).toEqual([])
  })

  test('lists and counts what it expects', async () => {
    const { receiver } = watching()
    await deliver(receiver, at(-1, 'file.received'))
    expect(await receiver.inbox.stats()).toMatchObject({ expected: 1 })
    expect(await receiver.inbox.expected?.()).toEqual([
      { rule: 'encoded', mediaId: 'm1', beganAt: new Date(noon - 60_000), dueAt: new Date(noon + twoHours) },
    ])
  })

  test('warns on closing that its expectations end with the process', async () => {
    const { logger, lines } = recordingLogger('info')
    const { receiver, reported } = watching({ logger })
    await deliver(receiver, at(0, 'file.received'))
    await vi.advanceTimersByTimeAsync(100)
    await receiver.close()
    await vi.advanceTimersByTimeAsync(twoHours + 100)
    expect(reported).toEqual([])
    expect(lines).toMatchObject([{ level: 'warn', message: 'the inbox closed; its open expectations are lost' }])
  })

  test('waits while the inbox is full', async () => {
    const { receiver, reported } = watching({
      inbox: memoryInbox({ maxWaiting: 1, concurrency: 1 }),
      handlerTimeoutMs: 2 * twoHours,
    })
    let finish = () => {}
    receiver.on('encoding.started', () => new Promise<void>((resolve) => (finish = resolve)))
    await deliver(receiver, at(0, 'file.received'))
    await vi.advanceTimersByTimeAsync(100)
    for (const media_id of ['m2', 'm3']) {
      await deliver(receiver, at(0, 'encoding.started', { media_id }))
      await vi.advanceTimersByTimeAsync(100)
    }
    await vi.advanceTimersByTimeAsync(twoHours)
    expect(reported).toEqual([])
    finish()
    await vi.advanceTimersByTimeAsync(100)
    finish()
    await vi.advanceTimersByTimeAsync(2_000)
    expect(reported).toHaveLength(1)
  })
})

describe('receiver.expect rejects', () => {
  const rule = { then: 'encoding.finished', within } as const
  const overdue = () => {}

  test.each([
    ['an unknown type', ['file.lost', rule, overdue], 'unknown event type file.lost'],
    ['a rule without then', ['file.received', { within }, overdue], 'unknown event type undefined'],
    ['an unknown type in then', ['file.received', { ...rule, then: 'done' }, overdue], 'unknown event type done'],
    ['no type in then', ['file.received', { ...rule, then: [] }, overdue], 'give at least one event type'],
    [
      'a type that would end itself',
      ['file.received', { ...rule, then: 'file.received' }, overdue],
      "can't both begin and end an expectation",
    ],
    ['no time', ['file.received', { then: 'encoding.finished' }, overdue], 'within must be a duration'],
    ['a time without a unit', ['file.received', { ...rule, within: '2' }, overdue], 'within must be a duration'],
    ['a time that no timer reaches', ['file.received', { ...rule, within: '25 d' }, overdue], 'up to 24 days'],
    ['an unknown option', ['file.received', { ...rule, after: 1 }, overdue], 'there is no option after'],
    ['no rule', ['file.received', undefined, overdue], 'the options must be an object, such as { then }'],
    ['no handler', ['file.received', rule], 'the handler must be a function'],
    ['an empty name', ['file.received', { ...rule, name: '' }, overdue], 'name must be a non-empty string'],
    [
      'a name that is taken',
      ['file.received', { ...rule, name: 'taken' }, overdue],
      'named taken is already registered',
    ],
  ])('%s', (_, args, message) => {
    const receiver = receiverWith().on('file.received', () => {}, { name: 'taken' })
    expect(() => (receiver.expect as (...args: unknown[]) => unknown)(...args)).toThrow(message)
  })

  test.each([
    ["ack 'handled'", { ack: 'handled' as const }, "needs ack 'accepted'"],
    ['a shared store', { inbox: memoryInbox({ store: sharedStore() }) }, 'memoryInbox keeps no expectations'],
    ['an inbox that keeps none', { inbox: otherInbox() }, 'other keeps no expectations'],
  ])('%s', (_, options, message) => {
    expect(() => receiverWith(options).expect('file.received', rule, overdue)).toThrow(message)
  })
})

function sharedStore() {
  return defineStore({
    claim: async () => 'claimed' as const,
    renew: async () => true,
    complete: async () => {},
    release: async () => {},
  } as never)
}

function otherInbox() {
  return defineInbox({ name: 'other', open: (host) => memoryInbox().open(host) })
}
