import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { LeaseClock } from '../../src/internal/lease-clock.ts'

describe('the lease clock', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  function lease(leaseMs: number) {
    const onEnd = vi.fn()
    return { onEnd, clock: new LeaseClock(leaseMs, onEnd) }
  }

  it('has no lease before the first renewal', () => {
    const { clock, onEnd } = lease(3_000)
    expect(clock.isOver).toBe(true)
    vi.advanceTimersByTime(10_000)
    expect(onEnd).not.toHaveBeenCalled()
  })

  it('counts from sending the renewal, not from its answer', () => {
    const { clock, onEnd } = lease(3_000)
    const sentAt = performance.now()
    vi.advanceTimersByTime(2_000)
    clock.renewed(sentAt)
    vi.advanceTimersByTime(999)
    expect(clock.isOver).toBe(false)
    vi.advanceTimersByTime(1)
    expect(clock.isOver).toBe(true)
    expect(onEnd).toHaveBeenCalledTimes(1)
  })

  it('keeps a lease that is renewed in time, and ends it once', () => {
    const { clock, onEnd } = lease(3_000)
    for (let renewal = 0; renewal < 5; renewal++) {
      clock.renewed(performance.now())
      vi.advanceTimersByTime(1_000)
    }
    expect(onEnd).not.toHaveBeenCalled()
    vi.advanceTimersByTime(60_000)
    expect(onEnd).toHaveBeenCalledTimes(1)
  })

  it('begins anew with a renewal after its end', () => {
    const { clock, onEnd } = lease(3_000)
    clock.renewed(performance.now())
    vi.advanceTimersByTime(5_000)
    clock.renewed(performance.now())
    expect(clock.isOver).toBe(false)
    vi.advanceTimersByTime(3_000)
    expect(onEnd).toHaveBeenCalledTimes(2)
  })

  it('is not shortened by the late answer to an earlier renewal', () => {
    const { clock } = lease(3_000)
    const first = performance.now()
    vi.advanceTimersByTime(1_000)
    clock.renewed(performance.now())
    clock.renewed(first)
    vi.advanceTimersByTime(2_500)
    expect(clock.isOver).toBe(false)
  })

  it('ends silently when it is stopped', () => {
    const { clock, onEnd } = lease(3_000)
    clock.renewed(performance.now())
    clock.stop()
    expect(clock.isOver).toBe(true)
    vi.advanceTimersByTime(10_000)
    expect(onEnd).not.toHaveBeenCalled()
  })
})
