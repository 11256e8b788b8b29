import { expect } from 'vitest'
import type { Runner } from '../../src/testing/contract/runner.ts'

/** The names of the tests of a suite that fail, of all or of one. A test that does not end soon has failed. */
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

/** What a subject that is wrong does otherwise than the right one. */
export type Wrong<Subject> = (right: Subject) => Partial<Subject>
