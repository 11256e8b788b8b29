import { keptOperations } from '../../../inbox/operations/operations.ts'
import type { Operation } from '../../../inbox/reading.ts'
import { Pager, pageAt } from '../../../internal/page/pager.tsx'
import { Section } from '../../../internal/page/section.tsx'
import { makeTitle, readOutcome } from './bulk-action.tsx'
import { counted, Foreign } from './elements.tsx'
import type { Answer, PageState } from './page-state.ts'
import { Ago } from './times.tsx'

/** Operations in an excerpt, and per page of the full list. */
const [shown, pageSize] = [5, 25]

interface OperationsProps {
  readonly page: PageState
  /** Only operations on this event. */
  readonly eventKey?: string
  /** Only operations on all dead letters of this cause. */
  readonly cause?: string | undefined
  /** All that are stored, page by page. */
  readonly areAll?: boolean
}

/** Recent operations: who, what, why and the outcome. Running jobs come first. */
export async function LastOperations({ page, eventKey, cause, areAll = false }: OperationsProps) {
  const { operations, bulkActions } = page.subject
  const limit = areAll || cause !== undefined ? keptOperations : shown + 1
  const found = await operations.list({ key: eventKey, limit })
  const listed = found.filter((each) => cause === undefined || each.cause === cause)
  const running = eventKey === undefined && cause === undefined ? bulkActions.running().slice(0, shown) : []
  if (listed.length + running.length === 0) return null
  const { current, last, offset } = pageAt(Number(page.query.get('page')), listed.length, pageSize)
  const address = (number?: number) => page.at('operations', { cause, page: number?.toString() })
  return (
    <Section id="operations" title="What operators did">
      <ul>
        {running.map((action) => (
          <li>
            <a href={page.at('bulk-action', { id: action.id })}>{makeTitle(action)}</a>,{' '}
            <Ago at={action.startedAt} now={page.now} />
          </li>
        ))}
        {(areAll ? listed.slice(offset, offset + pageSize) : listed.slice(0, shown)).map((operation) => (
          <li>
            <Done page={page} operation={operation} />
          </li>
        ))}
      </ul>
      {areAll && <Pager of="operations" current={current} last={last} address={address} />}
      {!areAll && listed.length > shown && <a href={address()}>All operations</a>}
    </Section>
  )
}

export const showOperations = async (page: PageState): Promise<Answer> => ({
  title: 'Operations',
  body: <LastOperations page={page} cause={page.query.get('cause') ?? undefined} areAll />,
})

/** One operation. Links to its bulk action and shows the outcome, if it ran in this process. */
export async function Done({ page, operation }: { page: PageState; operation: Operation }) {
  const { by, act, at, count = 1, handler, reason, bulkAction: id = '' } = operation
  const action = page.subject.bulkActions.get(id)
  const { outcome } = action ? await readOutcome(action) : { outcome: [] }
  const isPause = act === 'pause' || act === 'resume'
  return (
    <>
      <strong>{by === undefined ? 'Somebody' : <Foreign text={by} longest={60} />}</strong>{' '}
      {isPause && `${past[act]} ${handler === undefined ? 'the inbox' : 'the handler '}`}
      {handler !== undefined && <Foreign text={handler} longest={60} />}
      {!isPause && <a href={action && page.at('bulk-action', { id })}>{`${past[act]} ${counted(count, 'event')}`}</a>},{' '}
      <Ago at={at} now={page.now} />
      {reason !== undefined && (
        <>
          : “<Foreign text={reason} longest={200} />”
        </>
      )}
      {outcome.length > 0 && <span class="quiet">. {outcome.join(' ')}</span>}
    </>
  )
}

const past: Readonly<Record<Operation['act'], string>> = {
  replay: 'replayed',
  discard: 'discarded',
  retry: 'retried',
  stop: 'stopped the handler of',
  pause: 'paused',
  resume: 'resumed',
}
