/** The assertions that the contract suites use. The `expect` of Vitest, Jest and bun:test provides them. */
export interface Assertion {
  toBe(expected: unknown): void
  toEqual(expected: unknown): void
}

type Register = (name: string, run: () => Promise<void>) => unknown

/** The functions of a test runner that the contract suites use. Vitest, Jest and bun:test provide them. */
export interface Runner {
  /** Registers a test. `skip` registers one that does not apply; a runner without it leaves those out. */
  readonly test: Register & { readonly skip?: Register }
  /** Begins an assertion. */
  expect(value: unknown): Assertion
}

/** Reports a test as skipped, with the reason in its name. */
export function skip({ test }: Pick<Runner, 'test'>, name: string, reason: string): void {
  test.skip?.(`${name} (${reason})`, async () => {})
}
