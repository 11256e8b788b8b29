import { readOverdueReport } from '../../../handlers/expectations.ts'
import { type OverdueOutcome, readOverdue } from '../../../handlers/overdue.ts'
import { pausedFor } from '../../../inbox/operations/paused.ts'
import type { EventRecord, ReadableInbox } from '../../../inbox/reading.ts'
import { Copyable, Fact, Facts } from '../../../internal/page/elements.tsx'
import { Section } from '../../../internal/page/section.tsx'
import { visible } from '../reading/bytes.ts'
import { failuresOf, makeCause } from '../reading/causes.ts'
import { findBlocker, readStory, type Story } from '../reading/story.ts'
import { readTraceId } from '../reading/trace-id.ts'
import { Attempts } from './attempts.tsx'
import { Failures } from './cause.tsx'
import { Foreign, PostForm, ReasonField, Scrolling, ShortId, StateMark } from './elements.tsx'
import { LastOperations } from './operations.tsx'
import type { Answer, PageState } from './page-state.ts'
import { Awaited } from './rows.tsx'
import { Moment } from './times.tsx'
import { Unreadable } from './unreadable.tsx'

/** The page of an event or an unreadable delivery. */
export async function showEvent(page: PageState): Promise<Answer> {
  const key = page.query.get('key') ?? ''
  const story = await readStory(page.subject.inbox, key)
  if (story === undefined) return unknown(page, key)
  const { inbox, order } = page.subject
  const blocker = order === 'strict' && story.record ? await findBlocker(inbox, story.record) : undefined
  const overdue = story.record && (await readOverdue(inbox, story.record))
  const begun = overdue && (await inbox.events?.get(overdue.begunBy))
  const waitsFor = story.record && pausedFor(story.record, await page.pauses())
  const title = story.record === undefined ? 'Unreadable delivery' : visible(story.record.type.slice(0, 100))
  return {
    title,
    body: (
      <>
        <Summary page={page} eventKey={key} story={story} {...{ blocker, overdue, begun, waitsFor }} />
        {waitsFor === undefined && <Actions page={page} eventKey={key} story={story} />}
        {story.deadLetter && <Cause page={page} story={story} />}
        {story.record && <Attempts page={page} record={story.record} waitsFor={waitsFor} />}
        {story.deadLetter?.unreadable && <Unreadable page={page} unreadable={story.deadLetter.unreadable} />}
        {!story.record && <LastOperations page={page} eventKey={key} />}
        {story.record && <Payload page={page} record={story.record} />}
      </>
    ),
  }
}

/** Explains why an inbox may not know an event. */
export function whyUnknown({ events }: ReadableInbox): string {
  if (events === undefined)
    return 'It is not a dead letter. This inbox lists only dead letters: the event may be waiting or handled.'
  const reasons = 'its delivery never arrived or was rejected, its type has no handler, or it was discarded'
  return events.states.includes('handled')
    ? `Possible reasons: it was handled and has since been removed, ${reasons}.`
    : `Possible reasons: it was handled and forgotten, ${reasons}.`
}

const unknown = (page: PageState, key: string): Answer => ({
  title: 'No event has this key',
  status: 404,
  body: (
    <>
      <p>
        <code>
          <Foreign text={key} longest={500} />
        </code>
      </p>
      <p>{whyUnknown(page.subject.inbox)}</p>
      <LastOperations page={page} eventKey={key} />
    </>
  ),
})

interface StoryProps {
  readonly page: PageState
  readonly eventKey: string
  readonly story: Story
}

interface SummaryProps extends StoryProps {
  /** The retrying event ahead of this one. */
  readonly blocker: EventRecord | undefined
  readonly overdue: OverdueOutcome | undefined
  /** The event that started the expectation. */
  readonly begun: EventRecord | undefined
  readonly waitsFor: string | undefined
}

function Summary({ page, eventKey, story: { record, deadLetter }, blocker, overdue, begun, waitsFor }: SummaryProps) {
  const { state = 'dead', mediaId, event, dueAt, startedAt, process, handler } = record ?? {}
  const endedAt = record?.endedAt ?? deadLetter?.diedAt
  const receivedAt = record?.receivedAt ?? deadLetter?.receivedAt
  const trace = readTraceId(record?.trace ?? deadLetter?.trace)
  const title = event && page.subject.redaction.title(event)
  return (
    <div class="card">
      <Facts>
        <Fact name="State">
          <StateMark state={state} overdue={overdue} isPaused={waitsFor !== undefined} />
        </Fact>
        {blocker && (
          <Fact name="Waits behind">
            <a href={page.at('event', { key: blocker.key })}>
              <Foreign text={blocker.type} />
            </a>{' '}
            of the same media item, which is waiting for a retry
          </Fact>
        )}
        {mediaId !== undefined && (
          <Fact name="Media">
            {title !== undefined && <Foreign text={title} />}{' '}
            <a class="data" href={page.at('media', { id: mediaId })}>
              <Foreign text={mediaId} />
            </a>
          </Fact>
        )}
        {overdue && (
          <Expectation
            page={page}
            overdue={overdue}
            begunBy={begun?.type ?? (event && readOverdueReport(event)?.event.type) ?? 'the first event'}
          />
        )}
        <Time name={overdue ? 'Due' : 'Received'} at={receivedAt} now={page.now} />
        <Text name="Waits for" text={waitsFor && `${waitsFor} (paused)`} />
        <Time name="Next attempt" at={waitsFor === undefined ? dueAt : undefined} now={page.now} />
        <Time name="Running since" at={startedAt} now={page.now} />
        <Text name="Handler" text={handler} />
        <Text name="Process" text={process} />
        <Time name={state === 'handled' ? 'Handled' : 'Given up'} at={endedAt} now={page.now} />
        <Fact name="Event key">
          <Copyable text={eventKey} label="event key" />
        </Fact>
        <Fact name="Short id">
          <ShortId of={eventKey} />
        </Fact>
        {trace && (
          <Fact name="Trace id">
            <Copyable text={trace} label="trace id" />
          </Fact>
        )}
      </Facts>
    </div>
  )
}

/** @param props.begunBy type of the event that started it */
const Expectation = ({ page, overdue, begunBy }: { page: PageState; overdue: OverdueOutcome; begunBy: string }) => (
  <>
    <Text name="Rule" text={overdue.rule} />
    <Fact name="Begun by">
      <a href={page.at('event', { key: overdue.begunBy })}>
        <Foreign text={begunBy} />
      </a>
    </Fact>
    <Fact name="Expected">
      <Awaited page={page} overdue={overdue} />
    </Fact>
  </>
)

// These render nothing without a value.
const Text = ({ name, text }: { name: string; text: string | undefined }) =>
  text === undefined ? null : (
    <Fact name={name}>
      <Foreign text={text} />
    </Fact>
  )
const Time = ({ name, at, now }: { name: string; at: Date | undefined; now: Date }) =>
  at === undefined ? null : (
    <Fact name={name}>
      <Moment at={at} now={now} />
    </Fact>
  )

/** The actions that the state of the event allows. */
function Actions({ page, eventKey, story: { record, deadLetter } }: StoryProps) {
  const hidden = { key: eventKey, back: page.here }
  if (deadLetter !== undefined)
    return (
      <PostForm page={page} action="replay" hidden={hidden}>
        <button type="submit" class={deadLetter.unreadable ? 'secondary' : 'primary'}>
          {deadLetter.unreadable ? 'Parse again' : 'Replay'}
        </button>
        <button type="submit" class="secondary" formaction={page.at('discard')}>
          Discard…
        </button>
        <ReasonField />
      </PostForm>
    )
  if (record?.state === 'running' && page.subject.inbox.events?.stop !== undefined)
    return (
      <PostForm page={page} action="stop-handler" hidden={hidden}>
        <button type="submit">Stop the handler</button>
      </PostForm>
    )
  if (record?.state !== 'retrying') return null
  return (
    <PostForm page={page} action="retry" hidden={hidden}>
      <button type="submit" class="primary">
        Retry now
      </button>
    </PostForm>
  )
}

function Cause({ page, story: { deadLetter } }: Pick<StoryProps, 'page' | 'story'>) {
  if (deadLetter === undefined) return null
  const { id, isUnreadable } = makeCause(deadLetter)
  return (
    <Section id="cause" title={isUnreadable ? 'Why it could not be parsed' : 'Why it was given up'}>
      <Failures failures={failuresOf(deadLetter)} isUnreadable={isUnreadable} />
      <p>
        <a href={page.at('dead-letters', { cause: id })}>All dead letters of this cause</a>
      </p>
    </Section>
  )
}

function Payload({ page, record: { event, state } }: { page: PageState; record: EventRecord }) {
  const payload = event && page.subject.redaction.payload(event)
  return (
    <Section id="payload" title={event && readOverdueReport(event) ? 'Payload of the event that began it' : 'Payload'}>
      {payload ? (
        <Scrolling label="The payload as sent">
          <pre dir="ltr">{visible(JSON.stringify(payload, undefined, 2))}</pre>
        </Scrolling>
      ) : (
        <p class="quiet">
          {event === undefined && state === 'handled'
            ? 'Payloads are not kept after an event is handled.'
            : 'Hidden by the redact option.'}
        </p>
      )}
    </Section>
  )
}
