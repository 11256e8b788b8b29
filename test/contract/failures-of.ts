import { expect } from 'vitest'
import type { Runner } from '../../src/testing/contract/runner.ts'

/**
 * Runs all tests of a suite, or one, and returns the names of those that fail. A test that takes longer than 1.5 s
 * counts as failed.
 */
export async function failuresOf(suite: (runner: Runner) => void, only?: string): Promise<string[]> {
  const failures: string[] = []
  const runs: Promise<unknown>[] = []
  const runner: Runner = {
    test(name, run) {
      if (only !== undefined && name !== only) return
      const late = new Promise((_, reject) => setTimeout(reject, 1_500))
      runs.push(Promise.race([run(), late]).catch(() => failures.push(name)))
    },
    expect,
  }
  suite(runner)
  await Promise.all(runs)
  return failures
}

/** Makes the parts in which a wrong subject differs from the right one. */
export type Wrong<Subject> = (right: Subject) => Partial<Subject>
