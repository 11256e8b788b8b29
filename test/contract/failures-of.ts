import { expect } from 'vitest'
import type { Runner } from '../../src/testing/runner.ts'

/** The time after which a test counts as hanging, in ms. It is longer than the suites wait for anything. */
const hangingMs = 100_000

/** Runs all tests of a suite, or one. Returns the messages of those that fail, by the name of the test. */
export async function failuresOf(suite: (runner: Runner) => void, only?: string): Promise<Record<string, string>> {
  const failures: Record<string, string> = {}
  const runs: Promise<unknown>[] = []
  const runner: Runner = {
    test(name, run) {
      if (only !== undefined && name !== only) return
      const ended = withinTime(run()).catch((error: unknown) => {
        failures[name] = error instanceof Error ? error.message : String(error)
      })
      runs.push(ended)
    },
    expect,
  }
  suite(runner)
  await Promise.all(runs)
  return failures
}

async function withinTime(run: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('the test hangs')), hangingMs)
  })
  await Promise.race([run, late]).finally(() => clearTimeout(timer))
}

/** Makes the parts in which a wrong subject differs from the right one. */
export type Wrong<Subject> = (right: Subject) => Partial<Subject>
