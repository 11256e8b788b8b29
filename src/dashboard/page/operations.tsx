import { keptOperations } from '../../inbox/operations/operations.ts'
import type { Operation } from '../../inbox/reading.ts'
import { Section } from '../../page/section.tsx'
import { counted } from '../acting/result.ts'
import { Foreign } from './elements.tsx'
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

/** What operators did last, who and why. */
export async function LastOperations({ page, eventKey, cause }: OperationsProps) {
  const all = await page.subject.operations.list({ key: eventKey, limit: cause === undefined ? shown : keptOperations })
  const listed = all.filter((each) => cause === undefined || each.cause === cause).slice(0, shown)
  if (listed.length === 0) return null
  return (
    <Section id="operations" title="What operators did">
      <ul>
        {listed.map((operation) => (
          <li>
            <strong>{operation.by === undefined ? 'Somebody' : <Foreign text={operation.by} longest={60} />}</strong>{' '}
            {past[operation.act]} <Target operation={operation} />, <Ago at={operation.at} now={page.now} />
            {operation.reason !== undefined && (
              <>
                : “<Foreign text={operation.reason} longest={200} />”
              </>
            )}
          </li>
        ))}
      </ul>
    </Section>
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

function Target({ operation: { act, count, handler } }: { operation: Operation }) {
  if (act !== 'pause' && act !== 'resume') return <>{counted(count ?? 1, 'event')}</>
  if (handler === undefined) return <>the inbox</>
  return (
    <>
      the handler <Foreign text={handler} longest={60} />
    </>
  )
}
