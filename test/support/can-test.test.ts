import { afterEach, expect, test, vi } from 'vitest'
import { canTest } from './can-test.ts'

afterEach(() => {
  vi.unstubAllEnvs()
  vi.restoreAllMocks()
})

const check = (isThere: boolean, options?: Parameters<typeof canTest>[3]) =>
  canTest(isThere, 'redis-server does not run here', 'install it', options)

test('Tests run if their programs are there', () => {
  vi.stubEnv('CI', 'true')
  expect(check(true)).toBe(true)
})

test("Tests are skipped on a user's machine, with a message that says why", () => {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
  for (const ci of [undefined, '', 'false']) {
    vi.stubEnv('CI', ci)
    expect(check(false)).toBe(false)
  }
  expect(warn).toHaveBeenCalledTimes(3)
  expect(warn).toHaveBeenLastCalledWith(
    'redis-server does not run here, so its tests are skipped; to run them, install it',
  )
})

test('Tests fail in CI instead of being skipped, unless CI may be without what they need', () => {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
  vi.stubEnv('CI', 'true')
  expect(() => check(false)).toThrow('redis-server does not run here; to run its tests, install it')
  expect(check(false, { inCi: false })).toBe(false)
  expect(warn).toHaveBeenCalledTimes(1)
})
