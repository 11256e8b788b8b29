import type { HandlerFailure } from '../../inbox/reading.ts'
import { words } from '../acting/result.ts'
import type { Cause } from '../reading/causes.ts'
import { amount, Foreign, PostForm } from './elements.tsx'
import type { PageState } from './page-state.ts'
import { Ago } from './times.tsx'

interface CauseProps {
  readonly page: PageState
  readonly cause: Cause
}

/** The causes of dead letters, each with the failure of its newest one and what can be done. */
export function CauseList({ page, causes }: { page: PageState; causes: readonly Cause[] }) {
  return (
    <ul class="causes">
      {causes.map((cause) => (
        <li class="card">
          <p class="count">{amount(cause.rows.length)}</p>
          <CauseText cause={cause} />
          <p class="quiet">
            {typesOf(cause)}newest <Newest page={page} cause={cause} />{' '}
            <a href={page.at('dead-letters', { cause: cause.id })}>
              Show <span class="unseen">the dead letters of this cause</span>
            </a>
          </p>
          <CauseActions page={page} cause={cause} />
        </li>
      ))}
    </ul>
  )
}

function Newest({ page, cause: { rows } }: CauseProps) {
  return rows[0] === undefined ? null : <Ago at={rows[0].diedAt} now={page.now} />
}

/** The failures of the newest dead letter of a cause. */
export const CauseText = ({ cause: { rows, isUnreadable } }: Pick<CauseProps, 'cause'>) => (
  <Failures failures={rows[0]?.failures ?? []} isUnreadable={isUnreadable} />
)

interface FailuresProps {
  readonly failures: readonly HandlerFailure[]
  readonly isUnreadable: boolean
}

/** The handlers that failed, and their messages. */
export function Failures({ failures, isUnreadable }: FailuresProps) {
  const who = (handler: string) =>
    isUnreadable ? 'Could not be parsed' : handler === 'none' ? 'No handler ran' : handler
  return (
    <div class="reason">
      {failures.map(({ handler, message }) => (
        <p>
          <strong>
            <Foreign text={who(handler)} />
          </strong>
          : <Foreign text={message} longest={400} />
        </p>
      ))}
    </div>
  )
}

function typesOf({ rows }: Cause): string {
  const types = new Set(rows.flatMap(({ type }) => type ?? []))
  const [first] = types
  if (first === undefined) return ''
  return `${types.size <= 3 ? [...types].join(', ') : `${first} and ${types.size - 1} other types`}, `.slice(0, 200)
}

/** Replays or discards all dead letters of a cause that the reader can see. */
function CauseActions({ page, cause: { id, rows } }: CauseProps) {
  const until = String(rows[0]?.diedAt.getTime())
  const all = rows.length === 1 ? 'it' : `all ${amount(rows.length)}`
  return (
    <PostForm page={page} action="replay" hidden={{ scope: 'cause', cause: id, until, back: page.here }}>
      <button type="submit" class="primary">
        {words.replay.button} {all}
      </button>
      <button type="submit" class="secondary" formaction={page.at('discard')}>
        {words.discard.button} {all}…
      </button>
    </PostForm>
  )
}
