/** The assertions that the contract suites use. The `expect` of Vitest, Jest and bun:test provides them. */
export interface Expectation {
  toBe(expected: unknown): void
  toEqual(expected: unknown): void
}

/** The functions of a test runner that the contract suites use. Vitest, Jest and bun:test provide them. */
export interface Runner {
  /** Registers a test. */
  test(name: string, run: () => Promise<void>): unknown
  /** Begins an assertion. */
  expect(value: unknown): Expectation
}
