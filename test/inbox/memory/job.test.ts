import { expect, test } from 'vitest'
import { Job, JobAttempt, type JobState, transitions } from '../../../src/inbox/memory/job.ts'
import { eventOf } from '../../support/inbox.ts'

const slots = { whileWaiting: async () => {} }

/** What makes a job what it is to become. */
const steps: Readonly<Record<JobState, (job: Job) => void>> = {
  waiting: (job) => job.wait(),
  running: (job) => (job.state === 'limited' ? job.goOn() : job.start(new JobAttempt(job, slots))),
  limited: (job) => job.limit(),
  retrying: (job) => job.retry({ status: 'retry', delayMs: 60_000, completed: [], failures: [] }, () => {}),
  ended: (job) => job.end('handled'),
}

/** The shortest way to each state. */
const ways: Readonly<Record<JobState, readonly (keyof typeof steps)[]>> = {
  waiting: [],
  running: ['running'],
  limited: ['running', 'limited'],
  retrying: ['running', 'retrying'],
  ended: ['ended'],
}

const jobIn = (state: JobState): Job => {
  const job = new Job(eventOf('key'))
  for (const step of ways[state]) steps[step](job)
  expect(job.state).toBe(state)
  return job
}

const all = Object.keys(ways) as JobState[]
const pairs = all.flatMap((from) => (Object.keys(steps) as (keyof typeof steps)[]).map((to) => [from, to] as const))

test.each(pairs.filter(([from, to]) => transitions[from].includes(to)))('a job that is %s can be %s', (from, to) => {
  const job = jobIn(from)
  steps[to](job)
  expect(job.state).toBe(to)
  job.stop(new Error('the test has ended'))
})

test.each(pairs.filter(([from, to]) => !transitions[from].includes(to) && !(from === 'ended' && to === 'ended')))(
  'a job that is %s does not become %s',
  (from, to) => {
    const job = jobIn(from)
    expect(() => steps[to](job)).toThrow(`a job that is ${from} can't be ${to}`)
    expect(job.state).toBe(from)
    job.stop(new Error('the test has ended'))
  },
)

test('a job ends once', async () => {
  const job = jobIn('running')
  const result = job.ended()
  job.end('closing')
  job.end('handled')
  expect(await result).toBe('closing')
})
