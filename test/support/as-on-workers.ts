import { afterEach, beforeEach, vi } from 'vitest'

/**
 * Makes the modules that each test imports behave as on Workers.
 * @param options.fakeTime `true` for tests that decide when time passes
 */
export function asOnWorkers({ fakeTime = false } = {}): void {
  beforeEach(() => {
    vi.stubGlobal('navigator', { userAgent: 'Cloudflare-Workers' })
    if (fakeTime) {
      const clocks = ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate', 'performance', 'Date'] as const
      vi.useFakeTimers({ toFake: [...clocks] })
    }
    vi.resetModules()
  })
  afterEach(() => {
    vi.useRealTimers()
    vi.unstubAllGlobals()
    vi.resetModules()
  })
}
