/** The assertions the suite of stores uses. `expect` of Vitest, Jest and bun:test has them. */
export interface Assertion {
  toBe(expected: unknown): void
  toEqual(expected: unknown): void
}

type Register = (name: string, run: () => Promise<void>) => unknown

/** The parts of a test runner the suite of stores uses. Vitest, Jest and bun:test have them. */
export interface Runner {
  /** Registers a test. `skip` reports one that does not apply; without it, such tests are left out. */
  readonly test: Register & { readonly skip?: Register }
  expect(value: unknown): Assertion
}

export function skip({ test }: Pick<Runner, 'test'>, name: string, reason: string): void {
  test.skip?.(`${name} (${reason})`, async () => {})
}
