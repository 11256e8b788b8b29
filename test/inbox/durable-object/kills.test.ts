import { describe, expect, test } from 'vitest'
import { findRuntime } from '../../support/find-runtime.ts'
import { testSeed } from '../../support/test-seed.ts'
import { reportText } from '../kill/judge.ts'
import { expectingRun } from './kill/expecting-run.ts'
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

  test('what is overdue is reported once in spite of kills and evictions, and nothing whose end was acknowledged in time', async () => {
    const seed = testSeed()
    const { begun, reported, lives } = await expectingRun(binary as string, 3, seed)
    console.info(`durableObjectInbox: ${begun} lives began, ${reported.length} were reported (seed ${seed})`)
    expect(lives.faults(reported), `seed ${seed}`).toEqual([])
    expect(reported.length).toBeGreaterThan(20)
  })
})
