import type { ServerResponse } from 'node:http'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { profiles } from '../../../../src/service/emulator/sending/profile.ts'
import { listen, outboxWith, outcomesOf, payloadOf } from './targets.ts'

// Connections and answers are real. Only the time limits run by an injected clock.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

/** A receiver that answers when it is told to. `arrived` resolves when it has received a delivery. */
async function silentReceiver() {
  let arrive = (_: ServerResponse) => {}
  const arrived = new Promise<ServerResponse>((resolve) => {
    arrive = resolve
  })
  const { url } = await listen((_, response) => arrive(response))
  return { target: { id: 'w1', url }, arrived }
}

/** Lets `ms` pass, and everything that happens in that time take effect. */
async function pass(ms: number) {
  vi.advanceTimersByTime(ms)
  for (let i = 0; i < 20; i++) await turn()
}

// Pauses are scaled, time limits are not.
const scales = profiles.flatMap((profile) => [0.001, 1].map((timeScale) => ({ profile, timeScale })))

describe.each(scales)('with the profile $profile and the time scale $timeScale', (options) => {
  test('an event has 3 s to be acknowledged', async () => {
    const outbox = outboxWith(options)
    const { target, arrived } = await silentReceiver()
    const { id } = outbox.send(target, payloadOf('m1'))
    await arrived
    await pass(2_999)
    expect(outbox.get(id)).toMatchObject({ state: 'delivering', deliveries: [] })
    await pass(1)
    await expect.poll(() => outcomesOf(outbox.get(id))?.[0]).toBe('timeout')
    expect(outbox.get(id)?.deliveries[0]?.failure?.message).toBe('no answer within 3000 ms')
  })

  test('an event that is acknowledged just in time is not sent again', async () => {
    const outbox = outboxWith(options)
    const { target, arrived } = await silentReceiver()
    const { id } = outbox.send(target, payloadOf('m1'))
    const response = await arrived
    await pass(2_999)
    response.end()
    await outbox.idle()
    expect(outcomesOf(outbox.get(id))).toEqual([200])
  })

  test('the test delivery has 1 s', async () => {
    const outbox = outboxWith(options)
    const { target, arrived } = await silentReceiver()
    const checked = outbox.check(target, payloadOf('m1'))
    await arrived
    await pass(999)
    expect(outbox.list()).toMatchObject([{ state: 'delivering', deliveries: [] }])
    await pass(1)
    expect(outcomesOf(await checked)).toEqual(['timeout'])
  })
})
