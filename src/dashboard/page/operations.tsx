import { keptOperations } from '../../inbox/operations/operations.ts'
import type { Operation } from '../../inbox/reading.ts'
import { Section } from '../../page/section.tsx'
import { counted } from '../acting/result.ts'
import { Foreign } from './elements.tsx'
import { outcomeOf, titleOf } from './job.tsx'
import type { PageState } from './page-state.ts'
import { Ago } from './times.tsx'

/** Maximum number of operations that a page shows. */
const shown = 5

interface OperationsProps {
  readonly page: PageState
  /** Shows only what was done to this event. */
  readonly eventKey?: string
  /** Shows only what was done to all dead letters of this cause. */
  readonly cause?: string
}

/** What operators did last, who and why, and what became of it. The overview begins with what still runs. */
export async function LastOperations({ page, eventKey, cause }: OperationsProps) {
  const { operations, jobs } = page.subject
  const all = await operations.list({ key: eventKey, limit: cause === undefined ? shown : keptOperations })
  const listed = all.filter((each) => cause === undefined || each.cause === cause).slice(0, shown)
  const running = eventKey === undefined && cause === undefined ? jobs.running().slice(0, shown) : []
  if (listed.length + running.length === 0) return null
  return (
    <Section id="operations" title="What operators did">
      <ul>
        {running.map((job) => (
          <li>
            <a href={page.at('job', { id: job.id })}>{titleOf(job)}</a>, <Ago at={job.startedAt} now={page.now} />
          </li>
        ))}
        {listed.map((operation) => (
          <li>
            <Done page={page} operation={operation} />
          </li>
        ))}
      </ul>
    </Section>
  )
}

/** Leads to the job that did it, and says what became of its events, if it was one of this process. */
async function Done({ page, operation }: { page: PageState; operation: Operation }) {
  const { by, act, at, count = 1, handler, reason, job: id = '' } = operation
  const job = page.subject.jobs.get(id)
  const { outcome } = job ? await outcomeOf(job) : { outcome: [] }
  const isPause = act === 'pause' || act === 'resume'
  return (
    <>
      <strong>{by === undefined ? 'Somebody' : <Foreign text={by} longest={60} />}</strong>{' '}
      {isPause && `${past[act]} ${handler === undefined ? 'the inbox' : 'the handler '}`}
      {handler !== undefined && <Foreign text={handler} longest={60} />}
      {!isPause && <a href={job && page.at('job', { id })}>{`${past[act]} ${counted(count, 'event')}`}</a>},{' '}
      <Ago at={at} now={page.now} />
      {reason !== undefined && (
        <>
          : “<Foreign text={reason} longest={200} />”
        </>
      )}
      {outcome.length > 0 && <span class="quiet">. {outcome.join(' ')}</span>}
    </>
  )
}

const past: Readonly<Record<Operation['act'], string>> = {
  replay: 'replayed',
  discard: 'discarded',
  retry: 'retried',
  stop: 'stopped the handler of',
  pause: 'paused',
  resume: 'resumed',
}
