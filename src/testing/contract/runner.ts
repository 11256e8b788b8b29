/** What the contract suites expect of a value. The `expect` of vitest, jest and bun:test has all of it. */
export interface Expectation {
  toBe(expected: unknown): void
  toEqual(expected: unknown): void
}

/** The functions of a test runner that the contract suites use. */
export interface Runner {
  test(name: string, run: () => Promise<void>): unknown
  expect(value: unknown): Expectation
}
