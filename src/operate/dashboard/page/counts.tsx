import type { EventState, InboxStats } from '../../../inbox/reading.ts'
import { amount } from './elements.tsx'
import type { PageState } from './page-state.ts'
import { Ago } from './times.tsx'

interface CountsProps {
  readonly page: PageState
  readonly stats: InboxStats
  readonly oldest: Readonly<Record<'waiting' | 'running' | 'retrying' | 'dead', Date | undefined>>
  /** Earliest deadline among open expectations. */
  readonly nextDue: Date | undefined
  /** Overdue expectations whose event is not known to have come. */
  readonly missing: number
}

export function Counts({ page, stats, oldest, nextDue, missing }: CountsProps) {
  const { waiting, running, retrying, deadLetters, expected = 0 } = stats
  const news = `${waiting} waiting, ${running} running, ${retrying} retrying, ${deadLetters} dead letters`
  const { events } = page.subject.inbox
  const canList = events !== undefined
  // A SQLite file does not record which events a server is handling.
  const tellsRunning = !canList || events.states.includes('running')
  const list = (state: EventState) => (canList ? page.at('events', { state }) : undefined)
  const waits = tellsRunning ? 'Waiting' : 'Waiting or running'
  const shown: Omit<CountProps, 'page'>[] = [
    { label: waits, count: waiting, time: oldest.waiting, href: list('waiting') },
    { label: 'Running', count: running, time: oldest.running, href: list('running') },
    { label: 'Retrying', count: retrying, time: oldest.retrying, href: list('retrying'), tone: 'wait' },
    { label: 'Dead letters', count: deadLetters, time: oldest.dead, href: page.at('dead-letters'), tone: 'bad' },
    { label: 'Expected', count: expected, time: nextDue, timeName: 'next due', href: page.at('expected') },
    { label: 'Overdue', count: missing, href: page.at('expected'), tone: 'bad' },
  ]
  if (missing === 0) shown.pop()
  if (expected === 0) shown.splice(4, 1)
  if (!tellsRunning) shown.splice(1, 1)
  return (
    <>
      <p class="unseen" data-news>
        {news}
      </p>
      <ul class="counts">
        {shown.map((count) => (
          <Count page={page} {...count} />
        ))}
      </ul>
    </>
  )
}

interface CountProps {
  readonly page: PageState
  readonly label: string
  readonly count: number
  readonly time?: Date | undefined
  /** What `time` means. Default: `oldest`. */
  readonly timeName?: string
  readonly href?: string | undefined
  readonly tone?: 'wait' | 'bad'
}

export function Count({ page, label, count, time, timeName = 'oldest', href, tone }: CountProps) {
  return (
    <li class="card">
      <p class="quiet">{label}</p>
      <p class={count > 0 && tone ? `count ${tone}` : 'count'}>
        {href === undefined ? (
          amount(count)
        ) : (
          <a href={href} aria-label={`${label}: ${amount(count)}`}>
            {amount(count)}
          </a>
        )}
      </p>
      <p class="quiet">
        {count > 0 && time ? (
          <>
            {timeName} <Ago at={time} now={page.now} />
          </>
        ) : (
          '\u00a0'
        )}
      </p>
    </li>
  )
}
