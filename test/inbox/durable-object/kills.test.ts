import { describe, expect, test } from 'vitest'
import { findRuntime } from '../../support/find-runtime.ts'
import { testSeed } from '../../support/test-seed.ts'
import { reportText } from '../kill/judge.ts'
import { killRun } from './kill/run.ts'

const binary = findRuntime('workerd')

// `npm run soak -- durable-object` kills more often.
describe.skipIf(binary === undefined)('in Durable Objects', () => {
  test('no acknowledged event is lost by kills and evictions, and events are handled twice only when one cut them off', async () => {
    const seed = testSeed()
    const report = await killRun(binary as string, 3, seed)
    console.info(`durableObjectInbox: ${reportText(report)} (seed ${seed})`)
    expect(report.faults, `seed ${seed}`).toEqual([])
  })
})
