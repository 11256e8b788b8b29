import { type BulkAction, takenBy } from '../acting/bulk-actions.ts'
import { describeResult, words } from '../acting/result.ts'
import { amount, counted, PostForm } from './elements.tsx'
import type { Answer, PageState } from './page-state.ts'

export async function showBulkAction(page: PageState): Promise<Answer> {
  const action = page.subject.bulkActions.get(page.query.get('id') ?? '')
  if (action === undefined)
    return {
      title: 'Unknown action',
      status: 404,
      body: <p>It ended long ago, or it runs in another process of your application.</p>,
    }
  const { outcome, open } = await readOutcome(action)
  const body = (
    <>
      <Progress page={page} action={action} />
      {outcome.length > 0 && (
        <ul aria-label="The replayed events now">
          {outcome.map((sentence) => (
            <li>{sentence}</li>
          ))}
        </ul>
      )}
    </>
  )
  return { title: makeTitle(action), body, changes: action.state === 'running' || open > 0 }
}

/** Describes the outcomes of replayed events, and counts those still open. */
export async function readOutcome({ done, replayed }: BulkAction) {
  if (done === 0 || replayed === undefined) return { outcome: [], open: 0 }
  const { handled, dead, gone, open } = await replayed.count()
  const outcome = [
    ...(handled > 0 ? [`${counted(handled, 'event')} handled since.`] : []),
    ...(open > 0 ? [`${counted(open, 'event')} waiting, running or waiting for a retry.`] : []),
    ...(dead > 0 ? [`${counted(dead, 'event')} failed again, dead letters now.`] : []),
    ...(gone > 0 ? [`${counted(gone, 'event')} no longer in the inbox: handled and forgotten, or discarded.`] : []),
  ]
  return { outcome, open }
}

export const makeTitle = ({ act, total, state }: BulkAction): string => {
  const { ing, noun } = words[act]
  const many = total === undefined ? `${noun}s` : counted(total, noun)
  return state === 'running' ? `${ing} ${many}` : `${ing} ${many}: ${state}`
}

function Progress({ page, action }: { page: PageState; action: BulkAction }) {
  const { id, act, state, total, done } = action
  const taken = takenBy(action)
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
              ? 'Listing the events…'
              : `${amount(taken)} of ${amount(total)}, ${amount(done)} ${words[act].ed}.`}
          </p>
          <PostForm page={page} action="stop" hidden={{ id }}>
            <button type="submit">Stop</button>
          </PostForm>
          <p class="quiet">You may leave this page: the action continues until it ends or this process stops.</p>
        </>
      ) : (
        <>
          {describeResult(action).map((sentence) => (
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
