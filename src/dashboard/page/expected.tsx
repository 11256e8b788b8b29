import { overdueType } from '../../handlers/expectations.ts'
import type { OverdueEvent } from '../../handlers/overdue.ts'
import type { OpenExpectation } from '../../inbox/reading.ts'
import { Section } from '../../page/section.tsx'
import { rowsOf } from './as-row.ts'
import { Count } from './counts.tsx'
import { amount, Foreign } from './elements.tsx'
import type { Answer, PageState } from './page-state.ts'
import { Rows } from './rows.tsx'
import { Ago } from './times.tsx'

/** Maximum number of open expectations, of overdue ones, and of rules that are shown. */
const shownOpen = 50
const shownOverdue = 10
const shownRules = 20

/** What is overdue, by rule, and the expectations that are open: those that are due first. */
export async function showExpected(page: PageState): Promise<Answer> {
  const { inbox, overdue } = page.subject
  const title = 'Expected'
  if (inbox.expected === undefined) return { title, body: <p>This inbox keeps no expectations.</p> }
  const open = await inbox.expected(shownOpen)
  const stats = await inbox.stats()
  const { expected: count = 0 } = stats
  const { found, hasMore } = await overdue.read(stats)
  const missing = found.filter(({ overdue }) => overdue.outcome !== 'came').length
  const isForgetful = !inbox.events?.states.includes('handled')
  const list = page.at('events', { type: overdueType })
  return {
    title,
    body: (
      <>
        <ul class="counts">
          <Count page={page} label="Expected" count={count} time={open[0]?.dueAt} timeName="next due" />
          <Count page={page} label={isForgetful ? 'Overdue' : 'Still missing'} count={missing} href={list} tone="bad" />
          <Count page={page} label="Came later" count={found.length - missing} href={list} />
        </ul>
        {isForgetful && (
          <p class="quiet">This inbox forgets an overdue event once it is handled, and what came later as well.</p>
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

/** What is overdue is an event like others. */
async function Overdue({ page, found }: { page: PageState; found: readonly OverdueEvent[] }) {
  // What is still missing comes first.
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
          <ByRule found={found} />
          <Rows page={page} rows={await rowsOf(page, records, known)} timeName="Due" />
          <p>
            <a href={page.at('events', { type: overdueType })}>All overdue events</a>
          </p>
        </>
      )}
    </Section>
  )
}

/** How many events are missing, and how many came later, for each rule. */
function ByRule({ found }: { found: readonly OverdueEvent[] }) {
  const rules = new Set(found.map(({ overdue }) => overdue.rule))
  return (
    <table class="names">
      <caption>By rule</caption>
      <tbody>
        {[...rules].slice(0, shownRules).map((rule) => {
          const all = found.filter(({ overdue }) => overdue.rule === rule)
          const came = all.filter(({ overdue }) => overdue.outcome === 'came').length
          return (
            <tr>
              <th scope="row">
                <Foreign text={rule} longest={60} />
              </th>
              <td class={came < all.length ? 'bad' : undefined}>{amount(all.length - came)} overdue</td>
              <td>{amount(came)} came later</td>
            </tr>
          )
        })}
      </tbody>
    </table>
  )
}

const Open = ({ page, open }: { page: PageState; open: readonly OpenExpectation[] }) => (
  <table class="rows">
    <thead>
      <tr>
        <th scope="col">Rule</th>
        <th scope="col">Media</th>
        <th scope="col" class="number">
          Began
        </th>
        <th scope="col" class="number">
          Due
        </th>
      </tr>
    </thead>
    <tbody>
      {open.map(({ rule, mediaId, beganAt, dueAt }) => (
        <tr>
          <td class="type">
            <Foreign text={rule} longest={60} />
          </td>
          <td class="title">
            <a href={page.at('media', { id: mediaId })} class="plain data">
              <Foreign text={mediaId} longest={40} />
            </a>
          </td>
          <td class="number minor">
            <Ago at={beganAt} now={page.now} />
          </td>
          <td class="number">
            <Ago at={dueAt} now={page.now} />
          </td>
        </tr>
      ))}
    </tbody>
  </table>
)
