import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createReceiver, urlToken } from '../../src/index.ts'
import { makeDelivery, samplePayload } from '../../src/testing/index.ts'
import { recordingLogger } from '../support/recording-logger.ts'

const payload = samplePayload('encoding.finished')

function forged() {
  const { logger, lines } = recordingLogger('info')
  const outcomes: string[] = []
  const hooks = { delivery: ({ outcome }: { outcome: string }) => void outcomes.push(outcome) }
  const receiver = createReceiver({ verify: urlToken({ secret: 'right-secret-of-16' }), logger, hooks })
  const flood = async (deliveries: number, url = '/?token=wrong') => {
    for (let sent = 0; sent < deliveries; sent++) await receiver.receive(await makeDelivery(payload, { url }))
  }
  return { receiver, lines, outcomes, flood }
}

describe('a flood of forged deliveries', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  test('writes the first in full, and then a line a second with their number and the newest reason', async () => {
    const { lines, flood } = forged()
    await flood(1_000)
    expect(lines.map(({ message }) => message)).toEqual(['delivery rejected: the token in the URL is wrong'])
    await flood(1, '/')
    await vi.advanceTimersByTimeAsync(1_000)
    await flood(5)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(lines.slice(1)).toEqual([
      {
        level: 'warn',
        message: expect.stringMatching(
          /^1000 more deliveries were rejected within 1 s as unauthorized; the newest: the token in the URL is missing$/,
        ),
        details: { outcome: 'unauthorized', count: 1_000 },
      },
      {
        level: 'warn',
        message:
          '5 more deliveries were rejected within 1 s as unauthorized; the newest: the token in the URL is wrong',
        details: { outcome: 'unauthorized', count: 5 },
      },
    ])
  })

  test('is told to the hooks one by one', async () => {
    const { outcomes, flood } = forged()
    await flood(50)
    expect(outcomes).toEqual(Array.from({ length: 50 }, () => 'unauthorized'))
  })

  test('hides no rejection of another kind', async () => {
    const { receiver, lines, flood } = forged()
    await flood(10)
    await receiver.receive({ ...(await makeDelivery(payload)), method: 'PUT' })
    expect(lines.map(({ details }) => details['outcome'])).toEqual(['unauthorized', 'method_not_allowed'])
  })

  test('is logged in full again after a second without one', async () => {
    const { lines, flood } = forged()
    await flood(1)
    await vi.advanceTimersByTimeAsync(1_001)
    await flood(1)
    expect(lines.map(({ message }) => message)).toEqual([
      'delivery rejected: the token in the URL is wrong',
      'delivery rejected: the token in the URL is wrong',
    ])
  })

  test('is counted in a window of its own kind, which an older timer does not end', async () => {
    const { receiver, lines, flood } = forged()
    const put = async () => receiver.receive({ ...(await makeDelivery(payload)), method: 'PUT' })
    // The first timer is lost for two seconds, as when a process is suspended, and fires during the next window.
    const timers: (() => void)[] = []
    vi.spyOn(globalThis, 'setTimeout').mockImplementation(((run: () => void) => timers.push(run)) as never)
    await flood(2)
    await put()
    await vi.advanceTimersByTimeAsync(1_999)
    await flood(1)
    expect(lines).toHaveLength(2)
    await vi.advanceTimersByTimeAsync(1)
    await flood(2)
    expect(lines).toHaveLength(4)
    timers[0]?.()
    await flood(1)
    expect(lines).toHaveLength(4)
    vi.restoreAllMocks()
  })

  test('is counted on if the timer of its line never fires, as on Workers', async () => {
    const { lines, flood } = forged()
    vi.spyOn(globalThis, 'setTimeout').mockReturnValue(0 as never)
    await flood(3)
    vi.setSystemTime(Date.now() + 5_000)
    await vi.advanceTimersByTimeAsync(5_000)
    await flood(1)
    vi.restoreAllMocks()
    expect(lines.map(({ message }) => message)).toEqual([
      'delivery rejected: the token in the URL is wrong',
      '2 more deliveries were rejected within 1 s as unauthorized; the newest: the token in the URL is wrong',
      'delivery rejected: the token in the URL is wrong',
    ])
  })
})
