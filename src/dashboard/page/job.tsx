import type { EventState } from '../../inbox/reading.ts'
import { isFollowed, type Job, keptBy } from '../acting/jobs.ts'
import { counted, resultOf, words } from '../acting/result.ts'
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
  const states = await statesAfter(page, job)
  const isOpen = openStates.some((state) => states.has(state))
  const body = (
    <>
      <Progress page={page} job={job} />
      {states.size > 0 && <Since states={states} />}
    </>
  )
  return { title: titleOf(job), body, changes: job.state === 'running' || isOpen }
}

const openStates = ['waiting', 'running', 'retrying'] as const

/** Counts the events of a replay by the state that they have now. An event that its inbox no longer knows has none. */
async function statesAfter({ subject }: PageState, job: Job) {
  const states = new Map<EventState, number>()
  for (const key of isFollowed(job) ? job.keys : []) {
    const record = await subject.inbox.events?.get(key)
    if (record !== undefined) states.set(record.state, (states.get(record.state) ?? 0) + 1)
  }
  return states
}

/** The outcome of a replay. */
function Since({ states }: { states: ReadonlyMap<EventState, number> }) {
  const handled = states.get('handled') ?? 0
  const open = openStates.reduce((sum, state) => sum + (states.get(state) ?? 0), 0)
  const dead = states.get('dead') ?? 0
  return (
    <ul aria-label="The replayed events now">
      {handled > 0 && <li>{counted(handled, 'event')} handled since.</li>}
      {open > 0 && <li>{counted(open, 'event')} waiting, running or waiting for a retry.</li>}
      {dead > 0 && <li>{counted(dead, 'event')} failed again, dead letters now.</li>}
    </ul>
  )
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
