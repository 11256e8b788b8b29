import type { EventRecord, EventState } from '../../../inbox/reading.ts'
import { Section } from '../../../internal/page/section.tsx'
import { type CauseReport, groupedLimit } from '../reading/causes.ts'
import { makeRows } from './as-row.ts'
import { CauseList } from './cause.tsx'
import { Charts } from './charts.tsx'
import { Counts } from './counts.tsx'
import { amount, PostForm } from './elements.tsx'
import { LastOperations } from './operations.tsx'
import type { Answer, PageState } from './page-state.ts'
import { PauseForms } from './pauses.tsx'
import { Rows } from './rows.tsx'
import { retryable } from './selection.tsx'
import { isUntouched, Start } from './start.tsx'

const shownCauses = 5
const shownEvents = 5

export async function showOverview(page: PageState): Promise<Answer> {
  const { inbox, causes, isQueue } = page.subject
  const stats = await page.stats()
  const report = await causes.read(stats.deadLetters)
  const retrying = stats.retrying > 0 ? await readOldest(page, 'retrying', shownEvents) : []
  const [running] = stats.running > 0 ? await readOldest(page, 'running', 1) : []
  const oldest = {
    waiting:
      stats.oldestWaitingAt ?? (stats.waiting > 0 ? (await readOldest(page, 'waiting', 1))[0]?.receivedAt : undefined),
    running: running?.receivedAt,
    retrying: retrying[0]?.receivedAt,
    dead: report.isWhole ? report.oldest : undefined,
  }
  const isNew = await isUntouched(page, stats)
  const [next] = stats.expected ? ((await inbox.expected?.(1)) ?? []) : []
  const { missing } = await page.overdue()
  return {
    title: 'Overview',
    body: (
      <>
        <Limits page={page} />
        {!isQueue && <Counts page={page} stats={stats} oldest={oldest} nextDue={next?.dueAt} missing={missing} />}
        {!isQueue && !isNew && <Failing page={page} report={report} />}
        <PauseForms page={page} />
        {retrying.length > 0 && <Retrying page={page} records={retrying} total={stats.retrying} />}
        <LastOperations page={page} />
        {isNew ? <Start page={page} /> : <Charts page={page} />}
      </>
    ),
  }
}

const readOldest = async (
  { subject: { inbox } }: PageState,
  state: EventState,
  limit: number,
): Promise<readonly EventRecord[]> =>
  inbox.events?.states.includes(state) ? (await inbox.events.list({ state, order: 'oldest', limit })).events : []

/** What this inbox cannot show. */
function Limits({ page: { subject } }: { page: PageState }) {
  if (subject.isQueue)
    return (
      <p class="card">
        This inbox hands its events to a queue. Pending events, retries and dead letters are there. This page shows what
        this process received and handled.
      </p>
    )
  if (subject.inbox.events !== undefined) return null
  return <p class="quiet">This inbox cannot list its events, only counts and dead letters.</p>
}

function Failing({ page, report: { causes, isWhole } }: { page: PageState; report: CauseReport }) {
  return (
    <Section id="causes" title="Why events were given up">
      {causes.length === 0 ? (
        <p class="quiet">There are no dead letters.</p>
      ) : (
        <CauseList page={page} causes={causes.slice(0, shownCauses)} isWhole={isWhole} />
      )}
      {!isWhole && <p class="quiet">Only the newest {amount(groupedLimit)} are counted here.</p>}
      {causes.length > shownCauses && (
        <p>
          <a href={page.at('dead-letters')}>All {amount(causes.length)} causes</a>
        </p>
      )}
    </Section>
  )
}

async function Retrying({ page, records, total }: { page: PageState; records: readonly EventRecord[]; total: number }) {
  const rows = await makeRows(page, records)
  const count = (await retryable(page)) ?? total
  return (
    <Section id="retrying" title="Waiting for a retry">
      <Rows page={page} rows={rows} timeName="Received" />
      {count > 0 && (
        <PostForm
          page={page}
          action="retry"
          hidden={{ scope: 'all', until: String(page.now.getTime()), back: page.here }}
        >
          <button type="submit">{count === 1 ? 'Retry it now' : `Retry all ${amount(count)} now`}</button>
        </PostForm>
      )}
      {total > records.length && <a href={page.at('events', { state: 'retrying' })}>Show all {amount(total)}</a>}
    </Section>
  )
}
