import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  ApiError,
  createClient,
  registerWebhook,
  type WatchOptions,
  type Webhook,
  type WebhookProblem,
  watchWebhook,
} from '../../../src/service/client/index.ts'
import { createEmulator } from '../../../src/service/emulator/index.ts'
import { profiles } from '../../../src/service/emulator/sending/profile.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { answeringInbox, receiverWith } from '../../receiver/listening-receiver.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { untyped } from '../../support/untyped.ts'

const url = 'https://example.com/hooks?token=the-secret'
const minutes = (count: number) => vi.advanceTimersByTimeAsync(count * 60_000)

/** Watches a webhook of a service that answers as the test says. */
function watching(receiver = receiverWith().onAny(() => {}), more: Partial<WatchOptions> = {}) {
  let answer: Partial<Webhook> | Error = {}
  const get = vi.fn(async () => {
    if (answer instanceof Error) throw answer
    return { status: 'success', data: { webhook: { id: 'w1', url, ...answer } } }
  })
  const told: string[] = []
  const onProblem = ({ kind, solved }: WebhookProblem) => void told.push(solved ? `${kind} solved` : kind)
  const client = { webhook: { get } } as never
  const watch = watchWebhook({ client, receiver, webhook: { id: 'w1', url }, onProblem, ...more })
  onTestFinished(() => watch.stop())
  const say = (next: typeof answer) => {
    answer = next
  }
  return { say, told, get, watch, receiver }
}

const failure = (code: ConstructorParameters<typeof ApiError>[0]) =>
  new ApiError(code, `the service answered ${code}`, { method: 'GET', path: '/api/webhooks/w1' })

const triggered = (at: number) => ({ lastTriggeredAt: `2026-03-01T12:${`${at}`.padStart(2, '0')}:00.000000Z` })

const anEvent = () => samplePayload('encoding.finished', { emitted_at: new Date().toISOString() })

describe('watchWebhook', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  test('reports nothing while all is well, and checks every 5 minutes', async () => {
    const { told, get } = watching()
    await minutes(61)
    expect(told).toEqual([])
    expect(get).toHaveBeenCalledTimes(13)
  })

  test.each([
    ['deleted', failure('not_found')],
    ['moved', { url: 'https://example.com/elsewhere' }],
    ['unsubscribed', { encodingFinished: false }],
    ['unchecked', failure('connection')],
  ])('reports once that it is %s, and once that this is solved', async (kind, answer) => {
    const { say, told } = watching()
    await minutes(1)
    say(answer)
    await minutes(30)
    expect(told).toEqual([kind])
    say({})
    await minutes(30)
    expect(told).toEqual([kind, `${kind} solved`])
  })

  test('knows a URL in its normal form, and types that the receiver does not handle', async () => {
    const { say, told } = watching(receiverWith().on('encoding.finished', () => {}))
    say({ url: 'HTTPS://example.com:443/hooks?token=the-secret', encodingStarted: false, encodingFinished: true })
    await minutes(20)
    expect(told).toEqual([])
  })

  test('reports once that it cannot be checked, also if the reason changes', async () => {
    const { say, told } = watching()
    for (const code of ['connection', 'timeout', 'server'] as const) {
      say(failure(code))
      await minutes(10)
    }
    expect(told).toEqual(['unchecked'])
  })

  test('reports again if another type is missing', async () => {
    const { say, told } = watching()
    say({ encodingFinished: false })
    await minutes(10)
    say({ encodingFinished: false, encodingFailed: false })
    await minutes(10)
    expect(told).toEqual(['unsubscribed', 'unsubscribed'])
  })

  test('does not say that something is solved if the webhook is deleted or cannot be checked', async () => {
    const { say, told } = watching()
    say({ encodingFinished: false })
    await minutes(10)
    say(failure('timeout'))
    await minutes(10)
    say(failure('not_found'))
    await minutes(10)
    expect(told).toEqual(['unsubscribed', 'unchecked', 'deleted'])
  })

  test('reports deliveries that the service has sent and that have not arrived, until one arrives', async () => {
    const { say, told, receiver } = watching()
    say(triggered(1))
    await minutes(8)
    say(triggered(9))
    await minutes(3)
    expect(told).toEqual([])
    await minutes(5)
    expect(told).toEqual(['silent'])
    await deliver(receiver, anEvent())
    await minutes(5)
    expect(told).toEqual(['silent', 'silent solved'])
  })

  test('also reports the first delivery of a new webhook', async () => {
    const { say, told } = watching()
    await minutes(8)
    say(triggered(9))
    await minutes(10)
    expect(told).toEqual(['silent'])
  })

  test('reports nothing for what was triggered before it began, or just before', async () => {
    const { say, told } = watching()
    say(triggered(0))
    await minutes(1)
    say(triggered(1))
    await minutes(30)
    expect(told).toEqual([])
  })

  test('waits for a delivery that arrives after the check that saw it triggered', async () => {
    const { say, told, receiver } = watching()
    await minutes(14.9)
    say(triggered(9))
    await minutes(0.2)
    await deliver(receiver, anEvent())
    await minutes(30)
    expect(told).toEqual([])
  })

  test('counts an unreadable delivery as a delivery, and ignores a forged one', async () => {
    const verify = { name: 'none', needsBytes: false, verify: () => ({ verified: false, reason: 'forged' }) } as const
    const [unreadable, forged] = [watching(), watching(receiverWith({ verify }).onAny(() => {}))]
    await minutes(8)
    for (const { say, receiver } of [unreadable, forged]) {
      say(triggered(9))
      await deliver(receiver, 'not JSON')
    }
    await minutes(10)
    expect([unreadable.told, forged.told]).toEqual([[], ['silent']])
  })

  test('counts the deliveries of the other processes of its inbox, and no look-up', async () => {
    const minute = { accepted: 1, duplicates: 0, ignored: 0 }
    const inboxes = [[], [minute]].map((found) =>
      answeringInbox(() => 'accepted', { activity: (() => found) as never }),
    )
    const watches = inboxes.map((inbox) => watching(receiverWith({ inbox }).onAny(() => {})))
    await minutes(8)
    for (const { say, receiver } of watches) {
      say(triggered(9))
      await receiver.accept({ type: 'encoding.finished', mediaId: 'm1' })
    }
    await minutes(10)
    expect(watches.map(({ told }) => told)).toEqual([['silent'], []])
  })

  test('says so if the inbox cannot tell what has arrived, and decides later', async () => {
    let isReachable = false
    const activity = async () => {
      if (!isReachable) throw new Error('unreachable')
      return []
    }
    const { say, told } = watching(
      receiverWith({ inbox: answeringInbox(() => 'accepted', { activity }) }).onAny(() => {}),
    )
    await minutes(8)
    say(triggered(9))
    await minutes(5)
    isReachable = true
    await minutes(10)
    expect(told).toEqual(['unchecked', 'unchecked solved', 'silent'])
  })

  test('logs each problem without the URL, and an error of the function', async () => {
    const { logger, lines } = recordingLogger('info')
    const onProblem = async () => {
      throw new Error('failed')
    }
    const { say } = watching(
      receiverWith({ logger }).onAny(() => {}),
      { onProblem },
    )
    say({ url: 'https://example.com/elsewhere?token=other' })
    await minutes(5)
    say({})
    await minutes(5)
    expect(lines.map(({ level, message }) => `${level}: ${message}`)).toEqual([
      'error: the URL of the webhook has changed: its events go elsewhere',
      'error: onProblem threw',
      'info: solved: the URL of the webhook has changed: its events go elsewhere',
      'error: onProblem threw',
    ])
    expect(JSON.stringify(lines)).not.toContain('token')
  })

  test('is silent after stop, also while it asks', async () => {
    const { say, told, get, watch } = watching(undefined, { everyMs: 1_000 })
    await minutes(1)
    say(failure('not_found'))
    const calls = get.mock.calls.length
    vi.advanceTimersByTime(1_000)
    watch.stop()
    await minutes(10)
    expect([told, get.mock.calls.length]).toEqual([[], calls + 1])
  })

  test('leaves none of its hooks on the receiver after stop', async () => {
    const receiver = receiverWith().onAny(() => {})
    const seen = vi.fn()
    const { observe } = receiver
    vi.spyOn(receiver, 'observe').mockImplementation(({ delivery }) => {
      seen.mockImplementation((report) => delivery?.(report))
      return observe.call(receiver, { delivery: seen })
    })
    const { watch } = watching(receiver)
    await deliver(receiver, anEvent())
    expect(seen).toHaveBeenCalledOnce()
    watch.stop()
    await deliver(receiver, anEvent())
    expect(seen).toHaveBeenCalledOnce()
  })

  test.each([
    ['client', 'client must be a client'],
    ['receiver', 'receiver must be a receiver'],
    ['webhook', 'webhook must be data.webhook'],
    ['onProblem', 'onProblem must be a function'],
    ['everyMs', 'everyMs must be a whole number'],
    ['every', 'there is no option every'],
  ])('rejects an invalid %s', (option, message) => {
    expect(() => watching(undefined, untyped({ [option]: 'wrong' }))).toThrow(message)
  })
})

test.each(profiles)('watchWebhook sees what happens to a webhook of the service (%s)', async (profile) => {
  const emulator = await createEmulator({ profile })
  onTestFinished(() => emulator.close())
  const client = createClient(emulator.credentials, { baseUrl: emulator.url })
  const receiver = receiverWith().on('encoding.finished', () => {})
  const { data } = await registerWebhook(client, receiver, { url })
  const told: string[] = []
  const onProblem = ({ kind, solved }: WebhookProblem) => void told.push(solved ? `${kind} solved` : kind)
  const watch = watchWebhook({ client, receiver, webhook: data.webhook, everyMs: 10, onProblem })
  onTestFinished(() => watch.stop())
  const { id } = data.webhook
  await client.webhook.update(id, { encodingFinished: false, encodingFailed: true, url: 'https://example.com/other' })
  await expect.poll(() => told).toEqual(['moved', 'unsubscribed'])
  await client.webhook.update(id, { encodingFinished: true, url })
  await expect.poll(() => told).toEqual(['moved', 'unsubscribed', 'moved solved', 'unsubscribed solved'])
  await client.webhook.delete(id)
  await expect.poll(() => told.at(-1)).toBe('deleted')
})
