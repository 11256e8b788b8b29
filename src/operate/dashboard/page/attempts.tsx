import type { EventRecord, FailedAttempt, Operation } from '../../../inbox/reading.ts'
import { Section } from '../../../internal/page/section.tsx'
import { visible } from '../reading/bytes.ts'
import { Foreign } from './elements.tsx'
import { Done } from './operations.tsx'
import type { PageState } from './page-state.ts'
import { Moment } from './times.tsx'

/** Never cuts the last message: 2,000 characters of up to six bytes each. Earlier ones are cut. */
const longestMessage = 6_000

const shownOperations = 25

interface AttemptsProps {
  readonly page: PageState
  readonly record: EventRecord
  readonly waitsFor: string | undefined
}

/** The timeline of an event: receipt, failed attempts, operations, outcome. */
export async function Attempts({ page, record, waitsFor }: AttemptsProps) {
  const { now, subject } = page
  const { key, state, receivedAt, failedAttempts, completed, attempts, dueAt, endedAt, owed = [] } = record
  const operations = await subject.operations.list({ key, limit: shownOperations })
  const steps = [...failedAttempts, ...operations].sort((a, b) => timeOf(a) - timeOf(b))
  return (
    <Section id="attempts" title="What happened">
      <ol class="timeline">
        <li class="emitted">
          Received <Moment at={receivedAt} now={now} />
        </li>
        {steps.map((step) =>
          'act' in step ? (
            <li class="emitted">
              <Done page={page} operation={step} />
            </li>
          ) : (
            <Failed attempt={step} isLast={step === failedAttempts.at(-1)} now={now} />
          ),
        )}
        <li class={state === 'handled' ? 'emitted success' : state === 'dead' ? 'emitted failure' : 'pending'}>
          {waitsFor === undefined ? (
            <>
              {describeEnd(state, attempts)}{' '}
              {(endedAt ?? dueAt) && <Moment at={(endedAt ?? dueAt) as Date} now={now} />}
            </>
          ) : (
            <>
              Waits for <Foreign text={waitsFor} longest={60} /> (paused)
            </>
          )}
        </li>
      </ol>
      {completed.length > 0 && (
        <p>
          Completed, and not run again: <Foreign text={completed.join(', ')} longest={500} />
        </p>
      )}
      {owed.length > 0 && (
        <p>
          Still to run: <Foreign text={owed.join(', ')} longest={500} />
        </p>
      )}
    </Section>
  )
}

const Failed = ({ attempt, isLast, now }: { attempt: FailedAttempt; isLast: boolean; now: Date }) => (
  <li class="emitted failure">
    Attempt {attempt.number} failed <Moment at={attempt.failedAt} now={now} />
    <ul>
      {attempt.failures.map(({ handler, message, stack }) => (
        <li>
          {handler !== 'none' && (
            <>
              <strong>
                <Foreign text={handler} longest={60} />
              </strong>
              :{' '}
            </>
          )}
          <Foreign text={message} longest={isLast ? longestMessage : 80} />
          {stack && <pre dir="ltr">{visible(stack)}</pre>}
        </li>
      ))}
    </ul>
  </li>
)

const timeOf = (step: FailedAttempt | Operation): number => ('act' in step ? step.at : step.failedAt).getTime()

function describeEnd(state: EventRecord['state'], attempts: number): string {
  if (state === 'waiting') return 'Waiting for its turn'
  if (state === 'running') return `Attempt ${attempts} is running`
  if (state === 'retrying') return 'Next attempt'
  return state === 'dead' ? 'Given up' : `Handled in attempt ${attempts}`
}
