import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test, vi } from 'vitest'
import { longestComputing } from '../../../support/own-time.ts'
import { listen, listenAndAnswer, outboxWith, payloadOf, refusingUrl, timers } from './targets.ts'

describe('a closed outbox', () => {
  test('gives up every unfinished sending and leaves no timer', async () => {
    const { url } = await listen(() => {})
    const down = await refusingUrl()
    const outbox = outboxWith({ timeScale: 1 })
    for (let i = 0; i < 20; i++) {
      outbox.send({ id: `held ${i}`, url }, payloadOf('m1'), { fault: 'reorder' })
      outbox.send({ id: `late ${i}`, url }, payloadOf('m1'), { fault: 'delay' })
      outbox.send({ id: 'down', url: down }, payloadOf('m1'))
    }
    const states = () => new Set(outbox.list().map(({ state }) => state))
    await expect.poll(states).toEqual(new Set(['waiting', 'retrying']))
    for (let i = 0; i < 100; i++) outbox.send({ id: 'slow', url }, payloadOf('m1'))
    const checking = outbox.check({ id: 'slow', url }, payloadOf('m1'))
    await expect.poll(states).toContain('delivering')
    expect(timers()).toBeGreaterThan(80)

    await outbox.close()
    expect((await checking).state).toBe('failed')
    expect(states()).toEqual(new Set(['failed']))
    expect(outbox.list()).toHaveLength(161)
    expect(timers()).toBeLessThan(10)
    await outbox.close()
  })

  test('keeps a sending acknowledged even if its copy is cut off', async () => {
    let received = 0
    const { url } = await listen((request, response) => {
      received += 1
      if (received === 1) request.resume().on('end', () => response.end())
    })
    const triggered = vi.fn()
    const outbox = outboxWith({ profile: 'observed', triggered })
    const { id } = outbox.send({ id: 'w1', url }, payloadOf('m1'), { fault: 'duplicate' })
    await expect.poll(() => received).toBe(2)
    await outbox.close()
    expect(outbox.get(id)).toMatchObject({ state: 'acknowledged', deliveries: [{ answer: { status: 200 } }] })
    expect(triggered).toHaveBeenCalledOnce()
  })

  test('resolves pending calls of idle', async () => {
    const { url } = await listen(() => {})
    const outbox = outboxWith()
    outbox.send({ id: 'w1', url }, payloadOf('m1'))
    const idle = outbox.idle()
    await outbox.close()
    await idle
  })

  test('sends nothing', async () => {
    const outbox = outboxWith()
    await outbox.close()
    const closing = expect.objectContaining({ code: 'closing' })
    expect(() => outbox.send({ id: 'w1', url: 'http://127.0.0.1' }, payloadOf('m1'))).toThrow(closing)
    await expect(outbox.check({ id: 'w1', url: 'http://127.0.0.1' }, payloadOf('m1'))).rejects.toEqual(closing)
  })

  test('rejects a test delivery that was still waiting for its turn', async () => {
    const { url } = await listen(() => {})
    const outbox = outboxWith()
    const checks = Array.from({ length: 100 }, () => outbox.check({ id: 'w1', url }, payloadOf('m1')))
    await outbox.close()
    const results = await Promise.allSettled(checks)
    const rejected = results.flatMap((result) => (result.status === 'rejected' ? [result.reason.code] : []))
    expect(rejected.length).toBeGreaterThan(0)
    expect(new Set(rejected)).toEqual(new Set(['closing']))
  })
})

describe('an outbox limits', () => {
  test('the unfinished sendings, including test deliveries', async () => {
    const { url } = await listen(() => {})
    const outbox = outboxWith({ maxWaiting: 2 })
    outbox.send({ id: 'w1', url }, payloadOf('m1'))
    outbox.send({ id: 'w1', url }, payloadOf('m2'))

    const overloaded = expect.objectContaining({
      code: 'overloaded',
      message: 'too many unfinished events: the limit is 2',
    })
    expect(() => outbox.send({ id: 'w1', url }, payloadOf('m3'))).toThrow(overloaded)
    await expect(outbox.check({ id: 'w1', url }, payloadOf('m3'))).rejects.toEqual(overloaded)
    expect(outbox.list()).toHaveLength(2)
  })

  test('the finished sendings that it keeps, and keeps all unfinished ones', async () => {
    const { url } = await listenAndAnswer(200)
    const { url: slow } = await listen(() => {})
    const outbox = outboxWith({ maxRecords: 3 })
    const first = outbox.send({ id: 'slow', url: slow }, payloadOf('first'))
    for (let i = 0; i < 10; i++) {
      const { id } = outbox.send({ id: 'w1', url }, payloadOf(`m${i}`))
      await expect.poll(() => outbox.get(id)?.state, { interval: 1 }).toBe('acknowledged')
    }
    expect(outbox.list().map(({ payload }) => payload.media_id)).toEqual(['m9', 'm8', 'm7', 'first'])
    expect(outbox.get(first.id)?.state).toBe('delivering')
  })

  test('the concurrent deliveries', async () => {
    const { url } = await listen(() => {})
    const outbox = outboxWith()
    for (let i = 0; i < 600; i++) outbox.send({ id: `w${i % 9}`, url }, payloadOf(`m${i}`))
    await new Promise(setImmediate)
    const delivering = outbox.list().filter(({ state }) => state === 'delivering')
    expect(delivering.length).toBeLessThanOrEqual(64)
    expect(new Set(delivering.map(({ webhookId }) => webhookId)).size).toBeGreaterThan(5)
  })
})

test('long answers do not fill the memory', async () => {
  const answer = 'x'.repeat(65_000)
  const { url } = await listen((request, response) => request.resume().on('end', () => response.end(answer)))
  const outbox = outboxWith()
  const before = heapUsed()
  for (let i = 0; i < 500; i++) outbox.send({ id: 'w1', url }, payloadOf(`m${i}`))
  await outbox.idle()
  expect(outbox.list()[0]?.deliveries[0]?.answer?.body).toBe('x'.repeat(1_024))
  // The answers total 32 MB, of which half a megabyte is kept.
  expect(heapUsed() - before).toBeLessThan(16_000_000)
})

/** Returns the used memory in bytes after a garbage collection. */
function heapUsed(): number {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  return process.memoryUsage().heapUsed
}

test('ten thousand concurrent events do not block the process', async () => {
  const { url } = await listen((request, response) => request.resume().on('end', () => response.end()))
  const outbox = outboxWith()
  for (let i = 0; i < 10_000; i++) outbox.send({ id: `w${i % 5}`, url }, payloadOf(`m${i}`))

  const longest = longestComputing()
  await outbox.idle()
  expect(outbox.list().every(({ state }) => state === 'acknowledged')).toBe(true)
  expect(longest()).toBeLessThan(1_000)
})
