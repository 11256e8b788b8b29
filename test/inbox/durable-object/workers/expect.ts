import type { Assertion } from '../../../../src/testing/runner.ts'

/** The assertions that the contract suites use, for a runtime in which no test runner runs. */
export const expect = (actual: unknown): Assertion => ({
  toBe(expected) {
    if (!Object.is(actual, expected)) throw difference(actual, expected)
  },
  toEqual(expected) {
    if (!areEqual(actual, expected)) throw difference(actual, expected)
  },
})

const difference = (actual: unknown, expected: unknown): Error =>
  new Error(`got ${JSON.stringify(actual)}, expected ${JSON.stringify(expected)}`)

function areEqual(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false
  if (a instanceof Date) return a.getTime() === (b as Date).getTime()
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>]
  // A property that is undefined is as good as none.
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((key) => areEqual(left[key], right[key]))
}
