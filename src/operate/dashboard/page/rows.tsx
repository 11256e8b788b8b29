import type { OverdueOutcome } from '../../../handlers/overdue.ts'
import type { EventRecord, EventState, OpenExpectation } from '../../../inbox/reading.ts'
import { ageText } from '../../../internal/duration.ts'
import { Mark } from '../../../internal/page/elements.tsx'
import { cut, Foreign, ShortId, StateMark } from './elements.tsx'
import type { PageState } from './page-state.ts'
import { Ago } from './times.tsx'

type Recorded = 'key' | 'state' | 'attempts' | 'dueAt' | 'startedAt' | 'process' | 'handler'

export interface Row extends Pick<EventRecord, Recorded> {
  /** `undefined` for an unreadable delivery. */
  readonly type: string | undefined
  readonly mediaId: string | undefined
  readonly title: string | undefined
  /** When it was received, or died. */
  readonly at: Date
  readonly message: string | undefined
  readonly overdue?: OverdueOutcome | undefined
  readonly waitsFor?: string | undefined
}

interface RowsProps {
  readonly page: PageState
  readonly rows: readonly Row[]
  /** Heading of the time column, such as `Received`. */
  readonly timeName: string
  readonly selectable?: readonly EventState[]
  /** Hides a column that would repeat the subject of the page. */
  readonly without?: 'media' | 'message' | undefined
  readonly open?: readonly OpenExpectation[]
}

export function Rows({ page, rows, timeName, selectable: states = [], without, open = [] }: RowsProps) {
  const selectable = page.mayAct ? states : []
  return (
    <table class="rows">
      <thead>
        <tr>
          {selectable.length > 0 && (
            <th scope="col">
              <span class="unseen">Select</span>
            </th>
          )}
          <th scope="col">State</th>
          <th scope="col">Event</th>
          <th scope="col">Id</th>
          {without !== 'media' && <th scope="col">Media</th>}
          {without !== 'message' && <th scope="col">Last failure</th>}
          <th scope="col" class="number">
            Attempts
          </th>
          <th scope="col" class="number">
            {timeName}
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr>
            {selectable.length > 0 && (
              <td class="select">
                {selectable.includes(row.state) && row.waitsFor === undefined && (
                  <input type="checkbox" name="key" value={row.key} aria-label={`Select ${describeRow(row)}`} />
                )}
              </td>
            )}
            <Cells page={page} row={row} without={without} />
          </tr>
        ))}
        {open.map(({ rule, dueAt }) => (
          <tr>
            {selectable.length > 0 && <td class="select" />}
            <td>
              <Mark state="expected" shape="◌" />
            </td>
            <td class="type" colspan={without === undefined ? 5 : 4}>
              <Foreign text={rule} longest={60} />, due <Ago at={dueAt} now={page.now} />
            </td>
            <td />
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** Longest media id that a row links to. For longer ones, see the page of the event. */
const longestLinked = 100

function Cells({ page, row, without }: { page: PageState; row: Row } & Pick<RowsProps, 'without'>) {
  const { key, state, type, mediaId, title, message, overdue, waitsFor } = row
  return (
    <>
      <td>
        <StateMark state={state} overdue={overdue} isPaused={waitsFor !== undefined} />
      </td>
      <td class="data type">
        <a href={page.at('event', { key })}>
          {type === undefined ? 'unreadable delivery' : <Foreign text={type} longest={40} />}
        </a>
      </td>
      <td class="quiet minor">
        <ShortId of={key} />
      </td>
      {without !== 'media' && (
        <td class="title">
          {mediaId !== undefined && (
            <a href={mediaId.length > longestLinked ? undefined : page.at('media', { id: mediaId })} class="plain">
              {title !== undefined && <Foreign text={title} longest={60} />}{' '}
              <span class="data quiet">
                <Foreign text={mediaId} longest={40} />
              </span>
            </a>
          )}
        </td>
      )}
      {without !== 'message' && (
        <td class="message">
          {message !== undefined && <Foreign text={message} longest={120} />}
          {overdue && (
            <>
              <p>
                <Awaited page={page} overdue={overdue} />
              </p>
              <span class="quiet">
                Rule <Foreign text={overdue.rule} longest={60} />
              </span>
            </>
          )}
          <Next row={row} now={page.now} />
        </td>
      )}
      <td class="number data minor">{row.attempts}</td>
      <td class="number">
        <Ago at={row.at} now={page.now} />
      </td>
    </>
  )
}

/** The next attempt, the running one, or the pause it waits for. */
function Next({ row, now }: { row: Row; now: Date }) {
  const { dueAt, startedAt, process, handler, waitsFor } = row
  if (waitsFor === undefined && (dueAt ?? startedAt ?? process) === undefined) return null
  return (
    <span class="quiet">
      {waitsFor !== undefined ? (
        <>
          waits for <Foreign text={waitsFor} longest={60} /> (paused)
        </>
      ) : dueAt !== undefined ? (
        <>
          Next attempt <Ago at={dueAt} now={now} />
        </>
      ) : (
        <>
          Running {handler !== undefined && <Foreign text={`${handler} `} longest={60} />}
          {startedAt !== undefined && `for ${ageText(now.getTime() - startedAt.getTime())} `}
          {process !== undefined && <Foreign text={`in ${process}`} longest={60} />}
        </>
      )}
    </span>
  )
}

/** What was expected, and whether it came later. */
export const Awaited = ({
  page,
  overdue: { awaited, came, outcome },
}: {
  page: PageState
  overdue: OverdueOutcome
}) => (
  <>
    <Foreign text={awaited.join(' or ')} longest={60} />{' '}
    {came ? (
      <>
        <a href={page.at('event', { key: came.key })}>came</a> <Ago at={came.receivedAt} now={page.now} />
      </>
    ) : outcome === 'missing' ? (
      <span class="bad">is missing</span>
    ) : (
      'did not come in time'
    )}
  </>
)

const describeRow = ({ type = 'unreadable delivery', title, mediaId, key }: Row): string =>
  cut(`${type} ${title ?? mediaId ?? key}`, 60)
