/** The assertions that the contract suites use. The `expect` of Vitest, Jest and bun:test provides them. */
export interface Expectation {
  toBe(expected: unknown): void
  toEqual(expected: unknown): void
}

/** The functions of a test runner that the contract suites use. Vitest, Jest and bun:test provide them. */
export interface Runner {
  test(name: string, run: () => Promise<void>): unknown
  expect(value: unknown): Expectation
}
