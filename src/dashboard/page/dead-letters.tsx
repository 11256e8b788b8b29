import { Pager } from '../../page/pager.tsx'
import { counted } from '../acting/result.ts'
import { type Cause, type CauseReport, groupedLimit } from '../reading/causes.ts'
import { rowOfDead } from './as-row.ts'
import { CauseList, CauseText } from './cause.tsx'
import { amount, PostForm } from './elements.tsx'
import type { Answer, PageState } from './page-state.ts'
import { ReplaySelected, Rows, SelectionForm } from './rows.tsx'

/** The number of dead letters of a page. */
const pageSize = 50

/** All dead letters by cause, or those of one cause. */
export async function showDeadLetters(page: PageState): Promise<Answer> {
  const { inbox, causes } = page.subject
  const { deadLetters: count } = await inbox.stats()
  const report = await causes.read(count)
  const id = page.query.get('cause')
  const cause = report.causes.find((each) => each.id === id)
  if (cause !== undefined)
    return {
      title: `${counted(cause.rows.length, 'dead letter')} of one cause`,
      body: <OneCause page={page} cause={cause} />,
    }
  const gone = id !== null && <p class="card">All dead letters of this cause were replayed or discarded.</p>
  return {
    title: 'Dead letters',
    body: (
      <>
        {gone}
        <AllCauses page={page} report={report} count={count} />
      </>
    ),
  }
}

function OneCause({ page, cause }: { page: PageState; cause: Cause }) {
  const last = Math.max(1, Math.ceil(cause.rows.length / pageSize))
  const current = Math.min(Math.max(1, Math.trunc(Number(page.query.get('page')) || 1)), last)
  const shown = cause.rows.slice((current - 1) * pageSize, current * pageSize)
  const address = (number: number) => page.at('dead-letters', { cause: cause.id, page: String(number) })
  return (
    <>
      <div class="card">
        <CauseText cause={cause} />
      </div>
      <SelectionForm
        page={page}
        hidden={{ cause: cause.id, until: String(cause.rows[0]?.diedAt.getTime()) }}
        some={<SomeButtons page={page} />}
        all={<AllButtons page={page} count={cause.rows.length} />}
      >
        <Rows page={page} rows={shown.map((row) => rowOfDead(row))} timeName="Died" selectable={['dead']} />
      </SelectionForm>
      <Pager of="dead letters" current={current} last={last} address={address} />
    </>
  )
}

const SomeButtons = ({ page }: { page: PageState }) => (
  <>
    <ReplaySelected />
    <button type="submit" class="secondary" formaction={page.at('discard')}>
      Discard the selected…
    </button>
  </>
)

function AllButtons({ page, count }: { page: PageState; count: number }) {
  const all = count === 1 ? 'it' : `all ${amount(count)}`
  return (
    <>
      <button type="submit" name="scope" value="cause" class="primary">
        Replay {all}
      </button>
      <button type="submit" name="scope" value="cause" class="secondary" formaction={page.at('discard')}>
        Discard {all}…
      </button>
    </>
  )
}

interface AllCausesProps {
  readonly page: PageState
  readonly report: CauseReport
  /** The number of all dead letters. */
  readonly count: number
}

function AllCauses({ page, report: { causes, grouped }, count }: AllCausesProps) {
  if (grouped === 0)
    return <p>{page.subject.isQueue ? 'The queue keeps them.' : 'There are none: no event was given up.'}</p>
  const until = String(Math.max(...causes.map(({ rows }) => rows[0]?.diedAt.getTime() ?? 0)))
  return (
    <>
      <p>
        {amount(count)} {count === 1 ? 'event or delivery was' : 'events and deliveries were'} given up, for{' '}
        {causes.length === 1 ? 'one cause' : `${amount(causes.length)} causes`}. Fix a cause, deploy it, and replay:
        handlers that had completed do not run again.
      </p>
      {grouped === groupedLimit && <p class="quiet">Only the newest {amount(groupedLimit)} are grouped here.</p>}
      {causes.length > 1 && (
        <PostForm page={page} action="replay" hidden={{ scope: 'all', until, back: page.here }}>
          <button type="submit">Replay all {amount(count)}</button>
          <button type="submit" class="secondary" formaction={page.at('discard')}>
            Discard all {amount(count)}…
          </button>
        </PostForm>
      )}
      <CauseList page={page} causes={causes.slice(0, 100)} />
      {causes.length > 100 && <p class="quiet">{amount(causes.length - 100)} rarer causes are not shown.</p>}
    </>
  )
}
