import { overdueType } from '../../../handlers/expectations.ts'
import type { ReportedOverdue } from '../../../handlers/overdue.ts'
import type { OpenExpectation } from '../../../inbox/reading.ts'
import { Section } from '../../../internal/page/section.tsx'
import { makeRows } from './as-row.ts'
import { ByName } from './charts.tsx'
import { Count } from './counts.tsx'
import { amount, Foreign } from './elements.tsx'
import type { Answer, PageState } from './page-state.ts'
import { Rows } from './rows.tsx'
import { Ago } from './times.tsx'

const shownOpen = 50
const shownOverdue = 10

/** Overdue events by rule, and open expectations by deadline. */
export async function showExpected(page: PageState): Promise<Answer> {
  const { inbox } = page.subject
  const title = 'Expected'
  if (inbox.expected === undefined) return { title, body: <p>This inbox keeps no expectations.</p> }
  const open = await inbox.expected(shownOpen)
  const { expected: count = 0 } = await page.stats()
  const { found, hasMore, missing } = await page.overdue()
  const list = page.at('events', { type: overdueType })
  return {
    title,
    body: (
      <>
        <ul class="counts">
          <Count page={page} label="Expected" count={count} time={open[0]?.dueAt} timeName="next due" />
          <Count page={page} label="Overdue" count={missing} href={list} tone="bad" />
          <Count page={page} label="Came later" count={found.length - missing} href={list} />
        </ul>
        {!inbox.events?.states.includes('handled') && (
          <p class="quiet">
            This inbox forgets handled events. Overdue events that were handled, and what came later, are not counted.
          </p>
        )}
        {hasMore && <p class="quiet">Of the newest {amount(found.length)} overdue events.</p>}
        <Overdue page={page} found={found} />
        <Section id="open" title="Not due yet">
          {open.length === 0 ? <p>No event is expected.</p> : <Open page={page} open={open} />}
          {count > open.length && open.length === shownOpen && (
            <p class="quiet">
              The first {shownOpen} of {amount(count)}.
            </p>
          )}
        </Section>
      </>
    ),
  }
}

async function Overdue({ page, found }: { page: PageState; found: readonly ReportedOverdue[] }) {
  // Still missing first.
  const sorted = found.toSorted((a, b) => Number(a.overdue.outcome === 'came') - Number(b.overdue.outcome === 'came'))
  const shown = sorted.slice(0, shownOverdue)
  const known = new Map(shown.map(({ record, overdue }) => [record.key, overdue]))
  const records = shown.map(({ record }) => record)
  return (
    <Section id="overdue" title="Overdue">
      {found.length === 0 ? (
        <p>Nothing is overdue.</p>
      ) : (
        <>
          <ByName title="By rule" counts={missingByRule(found)} />
          <Rows page={page} rows={await makeRows(page, records, known)} timeName="Due" />
        </>
      )}
    </Section>
  )
}

function missingByRule(found: readonly ReportedOverdue[]): Readonly<Record<string, number>> {
  const missing = found.flatMap(({ overdue: { outcome, rule } }) => (outcome === 'came' ? [] : rule))
  return Object.fromEntries(missing.map((rule) => [rule, missing.filter((each) => each === rule).length]))
}

const Open = ({ page, open }: { page: PageState; open: readonly OpenExpectation[] }) => (
  <table class="rows">
    <thead>
      <tr>
        <th scope="col">Rule</th>
        <th scope="col">Media</th>
        <th scope="col" class="number">
          Due
        </th>
      </tr>
    </thead>
    <tbody>
      {open.map(({ rule, mediaId, dueAt }) => (
        <tr>
          <td class="type">
            <Foreign text={rule} longest={60} />
          </td>
          <td class="title">
            <a href={page.at('media', { id: mediaId })} class="plain data">
              <Foreign text={mediaId} longest={40} />
            </a>
          </td>
          <td class="number">
            <Ago at={dueAt} now={page.now} />
          </td>
        </tr>
      ))}
    </tbody>
  </table>
)
