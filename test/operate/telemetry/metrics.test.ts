import { expect, onTestFinished, test, vi } from 'vitest'
import { WebhookError } from '../../../src/errors.ts'
import type { InboxStats } from '../../../src/inbox/reading.ts'
import { lruStore, memoryInbox, type ReceiverOptions, urlToken } from '../../../src/index.ts'
import { openTelemetry } from '../../../src/operate/telemetry/index.ts'
import { deliver, samplePayload, signWithUrlToken } from '../../../src/testing/index.ts'
import { loopedInbox } from '../../inbox/queue/looped-inbox.ts'
import { signalled } from '../../support/signalled.ts'
import type { Collector, ExportedMetric } from './collector.ts'
import { startTracing, tracedReceiver } from './tracing.ts'

const { collector, exported, exportMetrics } = await startTracing()
const token = { secret: 'a secret' }
const sign = signWithUrlToken(token)
let receivers = 0

/** Makes a receiver with a name of its own: the SDK keeps the points of earlier tests. */
function namedReceiver(options: Partial<ReceiverOptions> = {}) {
  const name = `receiver ${++receivers}`
  const receiver = tracedReceiver({
    verify: urlToken(token),
    telemetry: openTelemetry({ receiver: name }),
    ...options,
  })
  return { receiver, ofReceiver: (metric: string) => pointsOf(collector, metric, name) }
}

/** The points of a receiver: their attributes without its name, and their value. */
function pointsOf({ metrics }: Collector, metric: string, receiver: string) {
  const { points = [] } = metrics.get(metric) ?? ({} as Partial<ExportedMetric>)
  return points.flatMap(({ attributes: { 'media_webhooks.receiver': of, ...attributes }, value }) =>
    of === receiver ? [[attributes, value] as const] : [],
  )
}

const receiving = { 'messaging.system': 'media_webhooks', 'messaging.operation.name': 'receive' }
const finished = { 'messaging.destination.name': 'encoding.finished' }
const outcome = (word: string) => ({ 'media_webhooks.outcome': word })

test('deliveries are counted by outcome and known type', async () => {
  const { receiver, ofReceiver } = namedReceiver()
  receiver.on('encoding.finished', () => {}).onAny(() => {})
  const payload = samplePayload('encoding.finished')
  await deliver(receiver, payload, { sign })
  await deliver(receiver, payload, { sign })
  await deliver(receiver, payload)
  for (const type of ['a', 'b', 'c']) await deliver(receiver, `{"type":"${type}","media_id":"a-film"}`, { sign })
  await exportMetrics()
  expect(ofReceiver('messaging.client.consumed.messages')).toEqual([
    [{ ...receiving, ...finished, ...outcome('accepted') }, 1],
    [{ ...receiving, ...finished, ...outcome('duplicate') }, 1],
    [{ ...receiving, ...outcome('unauthorized'), 'error.type': 'unauthorized' }, 1],
    [{ ...receiving, 'messaging.destination.name': '_OTHER', ...outcome('accepted') }, 3],
  ])
  expect(ofReceiver('media_webhooks.delivery.duration')).toEqual([
    [outcome('accepted'), 4],
    [outcome('duplicate'), 1],
    [outcome('unauthorized'), 1],
  ])
})

test('runs, attempts and events are measured by handler, type and outcome', async () => {
  const { receiver, ofReceiver } = namedReceiver({ retry: { attempts: 2, baseMs: 1 } })
  receiver.on('encoding.finished', () => {}, { name: 'publish' })
  receiver.on(
    'encoding.finished',
    () => {
      throw new RangeError('broken')
    },
    { name: 'notify' },
  )
  receiver.on('encoding.failed', () => {}, { name: 'report' })
  await deliver(receiver, samplePayload('encoding.finished'), { sign })
  await deliver(receiver, samplePayload('encoding.failed'), { sign })
  await exported('process', 4)
  await exportMetrics()
  const processing = { 'messaging.system': 'media_webhooks', 'messaging.operation.name': 'process' }
  const run = (handler: string, word: string) => ({ 'media_webhooks.handler': handler, ...outcome(word) })
  const failed = { 'messaging.destination.name': 'encoding.failed' }
  const points = ofReceiver('messaging.process.duration')
  expect(points).toHaveLength(4)
  expect(points).toEqual(
    expect.arrayContaining([
      [{ ...processing, ...finished, ...run('publish', 'handled') }, 1],
      [{ ...processing, ...finished, ...run('notify', 'retried'), 'error.type': 'RangeError' }, 1],
      [{ ...processing, ...finished, ...run('notify', 'dead-lettered'), 'error.type': 'RangeError' }, 1],
      [{ ...processing, ...failed, ...run('report', 'handled') }, 1],
    ]),
  )
  const attempts = ofReceiver('media_webhooks.attempts')
  expect(attempts).toHaveLength(3)
  expect(attempts).toEqual(
    expect.arrayContaining([
      [{ ...finished, ...outcome('retried') }, 1],
      [{ ...finished, ...outcome('dead-lettered') }, 1],
      [{ ...failed, ...outcome('handled') }, 1],
    ]),
  )
  expect(ofReceiver('media_webhooks.event.duration')).toEqual([[failed, 1]])
})

test('histograms have bounds that suit their values, those of the conventions if there are some', async () => {
  const { receiver } = namedReceiver({ inbox: memoryInbox({ store: lruStore() }) })
  receiver.on('encoding.finished', () => {})
  await deliver(receiver, samplePayload('encoding.finished'), { sign })
  await exported('process')
  await exportMetrics()
  const boundsOf = (name: string) => collector.metrics.get(name)?.points[0]?.bounds ?? []
  const conventional = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
  expect(boundsOf('messaging.process.duration')).toEqual(conventional)
  // The limits of the sender.
  expect(boundsOf('media_webhooks.delivery.duration')).toEqual(expect.arrayContaining([1, 3]))
  expect(boundsOf('media_webhooks.event.duration').at(-1)).toBe(86_400)
  expect(boundsOf('media_webhooks.inbox.step.duration')[0]).toBe(0.0001)
})

test('the kinds of errors are limited', async () => {
  const { receiver, ofReceiver } = namedReceiver({ retry: { attempts: 1 } })
  receiver.on('encoding.finished', ({ mediaId }) => {
    throw Object.assign(new Error('broken'), { name: mediaId })
  })
  for (let index = 0; index < 110; index++)
    await (await deliver(receiver, samplePayload('encoding.finished', { media_id: `Film${index}` }), { sign })).handled
  await exportMetrics()
  const types = ofReceiver('messaging.process.duration').map(([attributes]) => attributes['error.type'])
  expect(new Set(types).size).toBe(101)
  expect(types).toContain('_OTHER')
})

test('keys with two payloads are counted by type', async () => {
  const { receiver, ofReceiver } = namedReceiver()
  receiver.on('encoding.finished', () => {})
  const payload = samplePayload('encoding.finished')
  for (const title of ['one', 'other', 'third'])
    await (await deliver(receiver, { ...payload, title }, { sign })).handled
  await exportMetrics()
  expect(ofReceiver('media_webhooks.conflicts')).toEqual([[finished, 1]])
})

test('the steps of the storage are measured', async () => {
  const { receiver, ofReceiver } = namedReceiver({ inbox: memoryInbox({ store: lruStore() }) })
  receiver.on('encoding.finished', () => {})
  await deliver(receiver, samplePayload('encoding.finished'), { sign })
  await exportMetrics()
  const claim = { 'media_webhooks.inbox': 'memoryInbox', 'media_webhooks.step': 'claim' }
  expect(ofReceiver('media_webhooks.inbox.step.duration')).toContainEqual([claim, 1])
})

test('a step that failed has the kind of its error', async () => {
  const telemetry = openTelemetry({ receiver: 'with steps' })
  telemetry.measured('commit', 5, new WebhookError('unavailable', 'no connection'))
  await exportMetrics()
  expect(pointsOf(collector, 'media_webhooks.inbox.step.duration', 'with steps')).toEqual([
    [{ 'media_webhooks.step': 'commit', 'error.type': 'unavailable' }, 1],
  ])
})

const inbox = { 'media_webhooks.inbox': 'memoryInbox' }
const inState = (state: string) => ({ ...inbox, 'media_webhooks.state': state })

test('the events of the inbox are counted at each export, until the receiver closes', async () => {
  const { receiver, ofReceiver } = namedReceiver({ inbox: memoryInbox({ concurrency: 1 }), retry: { attempts: 1 } })
  const { promise: released, resolve: release } = signalled()
  receiver.on('encoding.finished', async ({ status }) => {
    if (status === 'dead') throw new Error('broken')
    await released
  })
  const send = (mediaId: string, status: string) =>
    deliver(receiver, samplePayload('encoding.finished', { media_id: mediaId, status }), { sign })
  await (await send('first', 'dead')).handled
  await send('second', 'running')
  await send('third', 'waiting')
  await vi.waitFor(async () => expect(await receiver.inbox.stats()).toMatchObject({ running: 1, waiting: 1 }))
  await exportMetrics()
  expect(ofReceiver('media_webhooks.inbox.events')).toEqual([
    [inState('waiting'), 1],
    [inState('running'), 1],
    [inState('retrying'), 0],
  ])
  expect(ofReceiver('media_webhooks.inbox.dead_letters')).toEqual([[inbox, 1]])
  const [[attributes, age] = []] = ofReceiver('media_webhooks.inbox.oldest_waiting.age')
  expect(attributes).toEqual(inbox)
  expect(age).toBeGreaterThanOrEqual(0)
  expect(age).toBeLessThan(30)

  const stats = vi.spyOn(receiver.inbox, 'stats')
  await exportMetrics()
  expect(stats).toHaveBeenCalledTimes(1)
  release()
  await receiver.close()
  await exportMetrics()
  expect(stats).toHaveBeenCalledTimes(1)
})

/** A memory inbox whose numbers are those of the test. */
function inboxWith(stats: () => InboxStats | Promise<InboxStats>) {
  const definition = memoryInbox()
  return { ...definition, open: (host: never) => Object.assign(definition.open(host), { stats }) }
}

const none: InboxStats = { waiting: 0, running: 0, retrying: 0, deadLetters: 0 }

test.each<[string, InboxStats, readonly number[]]>([
  ['is 0 if none waits', none, [0]],
  ['is absent if it is unknown', { ...none, waiting: 3 }, []],
  ['is never negative, though two clocks differ', { ...none, oldestWaitingAt: new Date(Date.now() + 3_600_000) }, [0]],
])('the age of the oldest event that waits %s', async (_, stats, ages) => {
  const { ofReceiver } = namedReceiver({ inbox: inboxWith(() => stats) })
  await exportMetrics()
  expect(ofReceiver('media_webhooks.inbox.oldest_waiting.age').map(([, age]) => age)).toEqual(ages)
})

test('the age of the oldest event that waits is in seconds', async () => {
  const stats = { ...none, waiting: 1, oldestWaitingAt: new Date(Date.now() - 90_000) }
  const { ofReceiver } = namedReceiver({ inbox: inboxWith(() => stats) })
  await exportMetrics()
  const [[, age = 0] = []] = ofReceiver('media_webhooks.inbox.oldest_waiting.age')
  expect(age).toBeGreaterThanOrEqual(90)
  expect(age).toBeLessThan(120)
})

test.each([
  [
    'throws',
    () => {
      throw new Error('no connection')
    },
  ],
  ['rejects', () => Promise.reject(new Error('no connection'))],
])('an inbox whose stats %s stops no other metric from being exported', async (_, stats) => {
  const { receiver, ofReceiver } = namedReceiver({ inbox: inboxWith(stats) })
  receiver.on('encoding.finished', () => {})
  await deliver(receiver, samplePayload('encoding.finished'), { sign })
  await exportMetrics()
  expect(ofReceiver('media_webhooks.inbox.events')).toEqual([])
  expect(ofReceiver('messaging.client.consumed.messages')).toHaveLength(1)
})

test('an inbox that never answers delays the export by 5 s at most', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const asked = signalled()
  const { receiver, ofReceiver } = namedReceiver({
    inbox: inboxWith(() => {
      asked.resolve()
      return new Promise(() => {})
    }),
  })
  receiver.on('encoding.finished', () => {})
  await deliver(receiver, samplePayload('encoding.finished'), { sign })
  const done = exportMetrics()
  await asked.promise
  await vi.advanceTimersByTimeAsync(5_000)
  vi.useRealTimers()
  await done
  expect(ofReceiver('messaging.client.consumed.messages')).toHaveLength(1)
})

test('an inbox that hands its events to a queue tells nothing of what waits and dies there', async () => {
  const { inbox: looped, close } = loopedInbox()
  onTestFinished(close)
  const { ofReceiver } = namedReceiver({ inbox: looped })
  await exportMetrics()
  expect(ofReceiver('media_webhooks.inbox.events')).toHaveLength(3)
  expect(ofReceiver('media_webhooks.inbox.dead_letters')).toEqual([])
  expect(ofReceiver('media_webhooks.inbox.oldest_waiting.age')).toEqual([])
  expect(ofReceiver('media_webhooks.inbox.expected')).toEqual([])
})

test('open expectations are counted at each export, and what is overdue is counted once by rule', async () => {
  const { receiver, ofReceiver } = namedReceiver({ retry: { attempts: 2, baseMs: 1 } })
  let runs = 0
  receiver.expect('file.received', { then: 'encoding.finished', within: 200, name: 'encoded' }, () => {
    runs++
    if (runs === 1) throw new Error('no operator answers')
  })
  await deliver(receiver, samplePayload('file.received'), { sign })
  await exportMetrics()
  expect(ofReceiver('media_webhooks.inbox.expected')).toEqual([[inbox, 1]])
  await vi.waitFor(() => expect(runs).toBe(2))
  await exported('process', 2)
  await exportMetrics()
  expect(ofReceiver('media_webhooks.inbox.expected')).toEqual([[inbox, 0]])
  const overdue = { 'messaging.destination.name': 'expectation.overdue' }
  const ended = ofReceiver('messaging.process.duration').filter(
    ([attributes]) => attributes['media_webhooks.outcome'] !== 'retried',
  )
  expect(ended).toEqual([
    [expect.objectContaining({ ...overdue, 'media_webhooks.handler': 'encoded', ...outcome('handled') }), 1],
  ])
  expect(ofReceiver('media_webhooks.attempts')).toEqual(
    expect.arrayContaining([
      [{ ...overdue, ...outcome('retried') }, 1],
      [{ ...overdue, ...outcome('handled') }, 1],
    ]),
  )
})
