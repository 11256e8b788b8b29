import { words } from '../acting/result.ts'
import type { Cause } from '../reading/causes.ts'
import { amount, Foreign, PostForm } from './elements.tsx'
import type { PageState } from './page-state.ts'
import { Ago } from './times.tsx'

/** The causes of dead letters, each with what can be done. */
export function CauseTable({ page, causes }: { page: PageState; causes: readonly Cause[] }) {
  return (
    <ul class="causes">
      {causes.map((cause) => (
        <li class="card">
          <p class="count">
            <a href={page.at('dead-letters', { cause: cause.id })}>
              {amount(cause.rows.length)} <span class="unseen">dead letters of this cause</span>
            </a>
          </p>
          <CauseText cause={cause} />
          <p class="quiet">
            {typesOf(cause)} Newest <Newest page={page} cause={cause} />
          </p>
          <CauseActions page={page} cause={cause} />
        </li>
      ))}
    </ul>
  )
}

function Newest({ page, cause }: { page: PageState; cause: Cause }) {
  const [newest] = cause.rows
  return newest === undefined ? null : <Ago at={newest.diedAt} now={page.now} />
}

/** The handlers that failed, and what they said. */
export function CauseText({ cause: { failures, isUnreadable } }: { cause: Pick<Cause, 'failures' | 'isUnreadable'> }) {
  return (
    <div class="reason">
      {failures.map(({ handler, message }) => (
        <p>
          <strong>
            {isUnreadable ? 'Could not be parsed' : handler === 'none' ? 'No handler ran' : <Foreign text={handler} />}
          </strong>
          : <Foreign text={message} longest={400} />
        </p>
      ))}
    </div>
  )
}

function typesOf({ rows }: Cause): string {
  const types = new Set(rows.flatMap(({ event }) => event?.type ?? []))
  const [first] = types
  if (first === undefined) return ''
  return `${types.size <= 3 ? [...types].join(', ') : `${first} and ${types.size - 1} other types`}.`.slice(0, 200)
}

/** Replays or discards all dead letters of a cause that the reader can see. */
export function CauseActions({ page, cause }: { page: PageState; cause: Cause }) {
  const until = String(cause.rows[0]?.diedAt.getTime())
  const all = cause.rows.length === 1 ? 'it' : `all ${amount(cause.rows.length)}`
  return (
    <PostForm action={page.at('replay')} hidden={{ scope: 'cause', cause: cause.id, until, back: page.here }}>
      <button type="submit">
        {words.replay.button} {all}
      </button>
      <button type="submit" class="danger" formaction={page.at('discard')}>
        {words.discard.button} {all}…
      </button>
    </PostForm>
  )
}
