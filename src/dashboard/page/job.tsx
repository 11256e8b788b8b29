import { type Job, keptBy } from '../acting/jobs.ts'
import { resultOf, words } from '../acting/result.ts'
import { amount, PostForm } from './elements.tsx'
import type { Answer, PageState } from './page-state.ts'

/** The progress and the result of an action on many events. */
export async function showJob(page: PageState): Promise<Answer> {
  const job = page.subject.jobs.get(page.query.get('id') ?? '')
  if (job === undefined)
    return {
      title: 'This action is not known here',
      status: 404,
      body: <p>It ended long ago, or it runs in another process of your application.</p>,
    }
  return { title: titleOf(job), body: <Progress page={page} job={job} />, changes: job.state === 'running' }
}

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
