import { Choice, Field } from '../../../internal/page/fields.tsx'
import { Pager, pageAt } from '../../../internal/page/pager.tsx'
import { type Cause, type CauseReport, groupedLimit } from '../reading/causes.ts'
import { type DeadFilter, rowsFound } from '../reading/dead-filter.ts'
import { rowOfDead } from './as-row.ts'
import { AllButtons, CauseFacts, Example } from './cause.tsx'
import { amount, cut } from './elements.tsx'
import { LastOperations } from './operations.tsx'
import type { PageState } from './page-state.ts'
import { Rows } from './rows.tsx'
import { Range, ReplaySelected, SelectionForm } from './selection.tsx'

const pageSize = 25

/** Handlers in the drop-down list, and the maximum length of their names. */
const shownHandlers = 30
const longestHandler = 60

interface FoundProps {
  readonly page: PageState
  readonly report: CauseReport
  readonly filter: DeadFilter
  /** The cause selected by the filter, if any. */
  readonly cause: Cause | undefined
}

export function Found({ page, report, filter, cause }: FoundProps) {
  const rows = rowsFound(report, filter)
  const { current, last, offset: begin } = pageAt(Number(page.query.get('page')), rows.length, pageSize)
  const shown = rows.slice(begin, begin + pageSize)
  const total = report.isWhole ? rows.length : `at least ${amount(rows.length)}`
  const address = (number: number) => page.at('dead-letters', { ...filter, page: String(number) })
  return (
    <>
      {cause && (
        <>
          <CauseFacts page={page} cause={cause} />
          <Example page={page} cause={cause} />
          <LastOperations page={page} cause={cause.id} />
        </>
      )}
      <Filter page={page} report={report} filter={filter} />
      {!report.isWhole && <p class="quiet">Only the newest {amount(groupedLimit)} dead letters are searched.</p>}
      {shown.length === 0 ? (
        <p>
          No dead letter matches. <a href={page.at('dead-letters')}>Clear the filter</a>
        </p>
      ) : (
        <>
          <Range
            begin={begin}
            count={shown.length}
            total={total}
            lines={page.at('dead-letters.jsonl', { ...filter })}
          />
          <SelectionForm
            page={page}
            hidden={{ ...filter, until: String(rows[0]?.diedAt.getTime()) }}
            some={<SomeButtons page={page} />}
            all={
              <AllButtons
                page={page}
                count={report.isWhole ? rows.length : undefined}
                isUnreadable={cause?.isUnreadable}
              />
            }
          >
            <Rows
              page={page}
              rows={shown.map((row) => rowOfDead(row))}
              timeName="Died"
              selectable={['dead']}
              without={cause && 'message'}
            />
          </SelectionForm>
        </>
      )}
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

export function Filter({ page, report, filter }: Omit<FoundProps, 'cause'>) {
  const { cause, text, handler, since, before } = filter
  const failed = report.causes.flatMap(({ rows }) => rows[0]?.failures.map((failure) => failure.handler) ?? [])
  const names = new Set(failed.filter((name) => name !== 'none' && cut(name, longestHandler) === name))
  const handlers = new Set([...[...names].slice(0, shownHandlers), handler ?? ''])
  handlers.delete('')
  return (
    <form method="get" action={page.at('dead-letters')} id="filter" class="filter inline">
      {cause !== undefined && <input type="hidden" name="cause" value={cause} />}
      <Field label="Title or error" name="text" value={text} />
      <Choice label="Handler" name="handler" value={handler} options={[['', 'any'], ...handlers]} />
      <Time label="Since (UTC)" name="since" value={since} />
      <Time label="Before (UTC)" name="before" value={before} />
      <button type="submit">Filter</button>
    </form>
  )
}

const Time = ({ label, name, value }: { label: string; name: string; value: string | undefined }) => (
  <label class="field">
    <span>{label}</span>
    <input type="datetime-local" name={name} value={value} />
  </label>
)
