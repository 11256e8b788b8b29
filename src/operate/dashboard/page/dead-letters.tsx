import { Pager, pageAt } from '../../../internal/page/pager.tsx'
import { type CauseReport, groupedLimit } from '../reading/causes.ts'
import { readDeadFilter } from '../reading/dead-filter.ts'
import { AllButtons, CauseList } from './cause.tsx'
import { amount, counted, PostForm } from './elements.tsx'
import { Filter, Found } from './found.tsx'
import type { Answer, PageState } from './page-state.ts'

const pageSize = 10

/** Dead letters by cause, or the result of a filter. */
export async function showDeadLetters(page: PageState): Promise<Answer> {
  const { causes } = page.subject
  const { deadLetters: count } = await page.stats()
  const report = await causes.read(count)
  const filter = readDeadFilter(page.query)
  const cause = report.causes.find(({ id }) => id === filter.cause)
  const isGone = filter.cause !== undefined && cause === undefined
  if (!isGone && Object.keys(filter).length > 0)
    return {
      title: cause ? `${counted(cause.rows.length, 'dead letter')} of one cause` : 'Dead letters found',
      body: <Found page={page} report={report} filter={filter} cause={cause} />,
    }
  return {
    title: 'Dead letters',
    body: (
      <>
        {isGone && <p class="card">All dead letters of this cause were replayed or discarded.</p>}
        <AllCauses page={page} report={report} count={count} />
      </>
    ),
  }
}

interface AllCausesProps {
  readonly page: PageState
  readonly report: CauseReport
  readonly count: number
}

function AllCauses({ page, report, count }: AllCausesProps) {
  const { causes, isWhole } = report
  const { current, last, offset } = pageAt(Number(page.query.get('page')), causes.length, pageSize)
  if (causes.length === 0) return <None page={page} />
  const until = String(Math.max(...causes.map(({ rows }) => rows[0]?.diedAt.getTime() ?? 0)))
  return (
    <>
      <p>
        {amount(count)} {count === 1 ? 'event or delivery was' : 'events and deliveries were'} given up, for{' '}
        {causes.length === 1 ? 'one cause' : `${amount(causes.length)} causes`}. Deploy a fix, then replay: handlers
        that had completed do not run again.
      </p>
      {!isWhole && <p class="quiet">Only the newest {amount(groupedLimit)} are grouped here.</p>}
      {causes.length > 1 && (
        <PostForm page={page} action="replay" hidden={{ until, back: page.here }}>
          <AllButtons
            page={page}
            scope="all"
            count={count}
            isUnreadable={isWhole && causes.every(({ isUnreadable }) => isUnreadable)}
          />
        </PostForm>
      )}
      <Filter page={page} report={report} filter={{}} />
      <CauseList page={page} causes={causes.slice(offset, offset + pageSize)} isWhole={isWhole} />
      <Pager
        of="causes"
        current={current}
        last={last}
        address={(number) => page.at('dead-letters', { page: String(number) })}
        names={['More frequent', 'Rarer']}
      />
    </>
  )
}

function None({ page: { subject, at } }: { page: PageState }) {
  if (subject.isQueue) return <p>Dead letters are in the queue.</p>
  return (
    <p>
      No dead letters: no event was given up.{' '}
      {subject.inbox.events && <a href={at('events')}>Go to the other events</a>}
    </p>
  )
}
