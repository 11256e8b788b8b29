import { expect, test } from 'vitest'
import { testSeed } from '../../support/test-seed.ts'
import { reportText } from '../kill/judge.ts'
import { expectingRun } from './kill/expecting-run.ts'
import { killRun } from './kill/run.ts'

// `npm run soak -- sqlite` kills more often.
test('no acknowledged event is lost by kills, and events are handled twice only when a kill cut them off', async () => {
  const seed = testSeed()
  const report = await killRun(3, seed)
  console.info(`sqliteInbox: ${reportText(report)} (seed ${seed})`)
  expect(report.faults, `seed ${seed}`).toEqual([])
})

test('what is overdue is reported once in spite of kills, and nothing whose end was acknowledged in time', async () => {
  const seed = testSeed()
  const { begun, reported, lives } = await expectingRun(4, seed)
  console.info(`sqliteInbox: ${begun} lives began, ${reported.length} were reported (seed ${seed})`)
  expect(lives.faults(reported), `seed ${seed}`).toEqual([])
  expect(reported.length).toBeGreaterThan(20)
})
