import { overdueType } from '../../handlers/expectations.ts'
import type { OpenExpectation } from '../../inbox/reading.ts'
import { Section } from '../../page/section.tsx'
import { rowOfRecord } from './as-row.ts'
import { amount, Foreign } from './elements.tsx'
import type { Answer, PageState } from './page-state.ts'
import { Rows } from './rows.tsx'
import { Ago } from './times.tsx'

/** Maximum number of open expectations, and of overdue ones, that are shown. */
const shownOpen = 50
const shownOverdue = 10

/** The expectations that are open, those that are due first, and the newest that are overdue. */
export async function showExpected(page: PageState): Promise<Answer> {
  const { inbox } = page.subject
  const title = 'Expected'
  if (inbox.expected === undefined) return { title, body: <p>This inbox keeps no expectations.</p> }
  const open = await inbox.expected(shownOpen)
  const { expected: count = 0 } = await inbox.stats()
  return {
    title,
    body: (
      <>
        {open.length === 0 ? <p>No event is expected.</p> : <Open page={page} open={open} />}
        {count > open.length && open.length === shownOpen && (
          <p class="quiet">
            The first {shownOpen} of {amount(count)}.
          </p>
        )}
        <Overdue page={page} />
      </>
    ),
  }
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
          <td class="number minor" data-name="began">
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

/** What is overdue is an event like others. */
async function Overdue({ page }: { page: PageState }) {
  const { events } = page.subject.inbox
  if (events === undefined) return null
  const found = await events.list({ type: overdueType, limit: shownOverdue })
  const isForgotten = !events.states.includes('handled')
  return (
    <Section id="overdue" title="Overdue">
      {isForgotten && <p class="quiet">This inbox forgets an overdue event once it is handled.</p>}
      {found.events.length > 0 && (
        <Rows page={page} rows={found.events.map((record) => rowOfRecord(page.subject, record))} timeName="Due" />
      )}
      {found.events.length === 0 && found.cursor === undefined ? (
        <p>Nothing is overdue.</p>
      ) : (
        <p>
          <a href={page.at('events', { type: overdueType })}>All overdue events</a>
        </p>
      )}
    </Section>
  )
}
