import type { ReplayOutcome } from '../../inbox/operations/replay-outcome.ts'
import { Section } from '../../page/section.tsx'
import { type Job, keptBy } from '../acting/jobs.ts'
import { counted, resultOf, words } from '../acting/result.ts'
import { amount, PostForm } from './elements.tsx'
import type { Answer, PageState } from './page-state.ts'
import { Ago } from './times.tsx'

/** The progress and the result of an action on many events. */
export async function showJob(page: PageState): Promise<Answer> {
  const job = page.subject.jobs.get(page.query.get('id') ?? '')
  if (job === undefined)
    return {
      title: 'This action is not known here',
      status: 404,
      body: <p>It ended long ago, or it runs in another process of your application.</p>,
    }
  const outcome = await outcomeOf(job, longestCountMs)
  const body = (
    <>
      <Progress page={page} job={job} />
      {outcome && <Outcome outcome={outcome} />}
    </>
  )
  return { title: titleOf(job), body, changes: job.state === 'running' || (outcome?.open ?? 0) > 0 }
}

/** Time for counting what became of replayed events (ms): on the page of a job, and of each job on the overview. */
const longestCountMs = 300
const shortCountMs = 30

const outcomeOf = (job: Job, forMs: number) => (job.done > 0 ? job.replayed?.count(forMs) : undefined)

/** The outcome of a replay. */
const Outcome = ({ outcome }: { outcome: ReplayOutcome }) => (
  <ul aria-label="The replayed events now">
    {sentencesOf(outcome).map((sentence) => (
      <li>{sentence}</li>
    ))}
  </ul>
)

function sentencesOf({ handled, dead, gone, open }: ReplayOutcome): readonly string[] {
  return [
    ...(handled > 0 ? [`${counted(handled, 'event')} handled since.`] : []),
    ...(open > 0 ? [`${counted(open, 'event')} waiting, running or waiting for a retry.`] : []),
    ...(dead > 0 ? [`${counted(dead, 'event')} failed again, dead letters now.`] : []),
    ...(gone > 0 ? [`${counted(gone, 'event')} no longer in the inbox: handled and forgotten, or discarded.`] : []),
  ]
}

/** The newest actions of this process, each with its outcome. */
export async function LastActions({ page }: { page: PageState }) {
  const jobs = page.subject.jobs.newest()
  const outcomes = await Promise.all(jobs.map((job) => outcomeOf(job, shortCountMs)))
  if (jobs.length === 0) return null
  return (
    <Section id="actions" title="Last actions">
      <ul>
        {jobs.map((job, index) => (
          <li>
            <a href={page.at('job', { id: job.id })}>{titleOf(job)}</a>{' '}
            <span class="quiet">
              <Ago at={job.startedAt} now={page.now} />. {sentencesOf(outcomes[index] ?? none).join(' ')}
            </span>
          </li>
        ))}
      </ul>
    </Section>
  )
}

const none: ReplayOutcome = { handled: 0, dead: 0, gone: 0, open: 0 }

const titleOf = ({ act, total, state }: Job): string => {
  const { ing, what } = words[act]
  const many = total === undefined ? `${what}s` : `${amount(total)} ${what}${total === 1 ? '' : 's'}`
  return state === 'running' ? `${ing} ${many}` : `${ing} ${many}: ${state}`
}

function Progress({ page, job }: { page: PageState; job: Job }) {
  const { id, act, state, total, done, gone } = job
  const taken = done + gone + keptBy(job)
  return (
    <div class="card spaced">
      <progress
        max={total ?? 1}
        value={total === undefined ? undefined : taken}
        aria-label={`${words[act].ing}: progress`}
      />
      {state === 'running' ? (
        <>
          <p data-news>
            {total === undefined
              ? 'The events are being listed.'
              : `${amount(taken)} of ${amount(total)}, ${amount(done)} ${words[act].ed}.`}
          </p>
          <PostForm page={page} action="stop" hidden={{ id }}>
            <button type="submit">Stop</button>
          </PostForm>
          <p class="quiet">It goes on if you leave this page, as long as this process runs.</p>
        </>
      ) : (
        <>
          {resultOf(job).map((sentence) => (
            <p>{sentence}</p>
          ))}
          <p data-news>
            <a href={page.at('dead-letters')}>Go to the dead letters</a>
          </p>
        </>
      )}
    </div>
  )
}
