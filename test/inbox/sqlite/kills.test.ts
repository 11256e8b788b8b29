import { expect, test } from 'vitest'
import { testSeed } from '../../support/test-seed.ts'
import { reportText } from '../kill/judge.ts'
import { killRun } from './kill/run.ts'

// `npm run soak -- sqlite` kills more often.
test('no acknowledged event is lost by kills, and events are handled twice only when a kill cut them off', async () => {
  const seed = testSeed()
  const report = await killRun(3, seed)
  console.info(`sqliteInbox: ${reportText(report)} (seed ${seed})`)
  expect(report.faults, `seed ${seed}`).toEqual([])
})
