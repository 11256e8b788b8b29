import type { Durations } from '../../../inbox/reading.ts'
import { durationText } from '../../../internal/duration.ts'
import { Section } from '../../../internal/page/section.tsx'
import { estimateQuantile, type Period, periods, type Slot, sumSlots, toSlots } from '../reading/slots.ts'
import type { ActivitySource } from '../subject.ts'
import { Bars } from './bars.tsx'
import { amount, Foreign, Scrolling } from './elements.tsx'
import type { Answer, PageState } from './page-state.ts'
import { Ago } from './times.tsx'

export const counts = [
  ['accepted', 'Accepted'],
  ['duplicates', 'Duplicates'],
  ['ignored', 'Without a handler'],
  ['rejected', 'Rejected'],
  ['handled', 'Handled'],
  ['failed', 'Failed attempts'],
] as const

const times = [
  ['acknowledgement', 'Time to acknowledge'],
  ['handling', 'Time from receipt to handled'],
] as const

export async function Charts({ page }: { page: PageState }) {
  const { activity } = page.subject
  if (activity === undefined)
    return (
      <Section id="activity" title="Activity">
        <p class="quiet">This inbox records no activity. To see it, open the dashboard in the receiver’s process.</p>
      </Section>
    )
  const period = findPeriod(page)
  const { since, slots } = await readSlots(page, activity, period)
  const total = sumSlots(slots, since)
  const axis = { since: slots[0]?.startedAt ?? since, slotMs: period.slotMs, now: page.now }
  return (
    <Section id="activity" title="Activity">
      <div class="row">
        <nav class="row tabs" aria-label="Period">
          {periods.map(({ name, label }) => (
            <a
              href={page.at('', { period: name === 'hour' ? undefined : name })}
              aria-current={name === period.name ? 'true' : undefined}
            >
              {label}
            </a>
          ))}
        </nav>
        <Scope page={page} activity={activity} />
      </div>
      <p class="quiet">The bars have a square-root scale. The dashed line is at a quarter of the maximum.</p>
      <div class="charts">
        {counts.map(([count, label]) => (
          <Bars
            label={label}
            figure={amount(total[count])}
            values={slots.map((slot) => slot[count])}
            format={amount}
            axis={axis}
            tone={toneOf(count)}
          />
        ))}
        {times.map(([kind, label]) => (
          <Bars
            label={label}
            figure={formatFigure(total[kind])}
            values={slots.map((slot) => estimateQuantile(slot[kind], 0.99) ?? 0)}
            inner={slots.map((slot) => estimateQuantile(slot[kind], 0.5) ?? 0)}
            format={duration}
            texts={slots.map((slot) => formatFigure(slot[kind]))}
            axis={axis}
          />
        ))}
      </div>
      <ByName title="Rejected deliveries by reason" counts={total.rejectedBy} />
      <ByName title="Failed runs by handler" counts={total.failedBy} />
      <p>
        <a href={page.at('numbers', { period: period.name })}>The numbers of the {period.label.toLowerCase()}</a>
      </p>
    </Section>
  )
}

const shownNames = 10

/** Counts by name, highest first. Renders nothing without counts. */
export function ByName({ title, counts = {} }: { title: string; counts: Slot['rejectedBy'] }) {
  const all = Object.entries(counts).sort(([, a], [, b]) => b - a)
  if (all.length === 0) return null
  return (
    <table class="names">
      <caption>{title}</caption>
      <tbody>
        {all.slice(0, shownNames).map(([name, count]) => (
          <tr>
            <th scope="row">
              <Foreign text={name} longest={60} />
            </th>
            <td>{amount(count)}</td>
          </tr>
        ))}
        {all.length > shownNames && (
          <tr>
            <th scope="row">{amount(all.length - shownNames)} others</th>
            <td>{amount(all.slice(shownNames).reduce((sum, [, count]) => sum + count, 0))}</td>
          </tr>
        )}
      </tbody>
    </table>
  )
}

const findPeriod = ({ query }: PageState): Period =>
  periods.find(({ name }) => name === query.get('period')) ?? periods[0]

async function readSlots({ now }: PageState, activity: ActivitySource, period: Period) {
  const since = new Date(now.getTime() - period.slots * period.slotMs)
  return { since, slots: toSlots(await activity.read(since), period, now) }
}

export async function showNumbers(page: PageState): Promise<Answer> {
  const { activity } = page.subject
  const period = findPeriod(page)
  const title = `The numbers of the ${period.label.toLowerCase()}`
  if (activity === undefined) return { title, body: <p>This inbox records no activity.</p> }
  const { slots } = await readSlots(page, activity, period)
  return { title, body: <Numbers slots={slots} /> }
}

const toneOf = (count: string) =>
  count === 'failed' || count === 'rejected' ? 'bad' : count === 'handled' ? 'good' : undefined

/** Rounded: quantiles are estimated, so decimals would be made up. */
const duration = (ms: number): string => durationText(ms < 10 ? ms : Math.round(ms))

function formatFigure(durations: Durations): string {
  const [median, p99] = [estimateQuantile(durations, 0.5), estimateQuantile(durations, 0.99)]
  return median === undefined || p99 === undefined ? '–' : `median ${duration(median)}, p99 ${duration(p99)}`
}

function Scope({ page, activity: { ofThisProcessSince: since } }: { page: PageState; activity: ActivitySource }) {
  if (since === undefined) return <p class="quiet">All processes that use this inbox.</p>
  return (
    <p class="quiet">
      This process only. Counting began <Ago at={since} now={page.now} />.
    </p>
  )
}

function Numbers({ slots }: { slots: readonly Slot[] }) {
  const busy = slots.filter((slot) => counts.some(([count]) => slot[count] > 0)).toReversed()
  const time = (ms: number | undefined) => (ms === undefined ? '' : duration(ms))
  return (
    <div id="numbers">
      <Scrolling label="The numbers behind the charts">
        <table>
          <thead>
            <tr>
              <th scope="col">From</th>
              {counts.map(([, label]) => (
                <th scope="col" class="number">
                  {label}
                </th>
              ))}
              {['Acknowledged: median', 'p99', 'Handled: median', 'p99'].map((label) => (
                <th scope="col" class="number">
                  {label}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {busy.map((slot) => (
              <tr>
                <th scope="row">
                  <time datetime={slot.startedAt.toISOString()}>
                    {slot.startedAt.toISOString().slice(0, 16).replace('T', ' ')}
                  </time>
                </th>
                {counts.map(([count]) => (
                  <td>{amount(slot[count])}</td>
                ))}
                {times.flatMap(([kind]) =>
                  [0.5, 0.99].map((part) => <td>{time(estimateQuantile(slot[kind], part))}</td>),
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </Scrolling>
      {busy.length === 0 && <p class="quiet">Nothing was received or handled.</p>}
    </div>
  )
}
