import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Renewal } from '../../../src/inbox/sql/renewal.ts'
import type { SharedLease } from '../../../src/inbox/sql/store.ts'
import { silent } from '../../support/silent.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Starts the renewal of a lease of 900 ms. A renewal takes `tookMs`. */
function renewing(lease: Partial<SharedLease> = {}, answer: object = {}) {
  const state = { tookMs: 0, isLost: false, hasDead: false, ...answer }
  const renew = vi.fn(async () => {
    await new Promise((resolve) => setTimeout(resolve, state.tookMs))
    return { isLost: state.isLost, hasDead: state.hasDead }
  })
  const takeOver = vi.fn(async () => {})
  const told = { renewed: vi.fn(), lost: vi.fn(async () => {}), tookOver: vi.fn() }
  const all = { leaseMs: 900, renew, takeOver, ...lease } as unknown as SharedLease
  const renewal = new Renewal({ lease: all, isTransient: () => false, logger: silent, ...told })
  renewal.start()
  return { renewal, state, renew, takeOver, ...told }
}

test('a lease is renewed every third of its time, from when a renewal was sent', async () => {
  const { renew } = renewing({}, { tookMs: 200 })
  await vi.advanceTimersByTimeAsync(10)
  expect(renew).toHaveBeenCalledTimes(1)
  await vi.advanceTimersByTimeAsync(280)
  expect(renew).toHaveBeenCalledTimes(1)
  await vi.advanceTimersByTimeAsync(20)
  expect(renew).toHaveBeenCalledTimes(2)
})

test('events are taken over when another lease is over, once at a time', async () => {
  let end = () => {}
  const takeOver = vi.fn(() => new Promise<void>((resolve) => (end = resolve)))
  const { state, tookOver } = renewing({ takeOver })
  await vi.advanceTimersByTimeAsync(100)
  expect(takeOver).not.toHaveBeenCalled()
  state.hasDead = true
  await vi.advanceTimersByTimeAsync(1_000)
  expect(takeOver).toHaveBeenCalledTimes(1)
  expect(tookOver).not.toHaveBeenCalled()
  end()
  await vi.advanceTimersByTimeAsync(400)
  expect(tookOver).toHaveBeenCalledTimes(1)
  expect(takeOver).toHaveBeenCalledTimes(2)
})

test('a late renewal gives the others until the next one, unless every renewal is late', async () => {
  const { takeOver } = renewing({}, { tookMs: 500, hasDead: true })
  await vi.advanceTimersByTimeAsync(600)
  expect(takeOver).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(500)
  expect(takeOver).toHaveBeenCalledTimes(1)
})

test('a lease that is over is begun again before events may be claimed', async () => {
  const { renewed, lost } = renewing({}, { isLost: true })
  await vi.advanceTimersByTimeAsync(10)
  expect(lost).toHaveBeenCalledTimes(1)
  expect(renewed).toHaveBeenCalledTimes(2)
  expect(lost.mock.invocationCallOrder[0]).toBeLessThan(renewed.mock.invocationCallOrder[1] as number)
})

test('a stop waits for the takeover', async () => {
  let end = () => {}
  const takeOver = () => new Promise<void>((resolve) => (end = resolve))
  const { renewal } = renewing({ takeOver }, { hasDead: true })
  await vi.advanceTimersByTimeAsync(10)
  let isStopped = false
  const stopped = renewal.stop().then(() => (isStopped = true))
  await vi.advanceTimersByTimeAsync(10)
  expect(isStopped).toBe(false)
  end()
  await stopped
})
