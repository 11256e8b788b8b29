import type { PropsWithChildren } from 'hono/jsx'
import type { HandlerFailure } from '../../../inbox/reading.ts'
import { visible } from '../reading/bytes.ts'
import { type Cause, type CauseReport, commonFailures } from '../reading/causes.ts'
import { byHour, findOldest } from '../reading/first-failure.ts'
import { Drawing } from './bars.tsx'
import { amount, counted, cut, Foreign, PostForm } from './elements.tsx'
import type { PageState } from './page-state.ts'
import { Ago } from './times.tsx'

interface CauseProps {
  readonly page: PageState
  readonly cause: Cause
}

interface CauseListProps extends Pick<CauseReport, 'isWhole'> {
  readonly page: PageState
  readonly causes: readonly Cause[]
}

export function CauseList({ page, causes, isWhole }: CauseListProps) {
  return (
    <>
      <p class="quiet">The bars cover the last 24 hours. Each dead letter counts in the hour it first failed.</p>
      <ul class="causes">
        {causes.map((cause) => (
          <Card page={page} cause={cause}>
            <CauseActions page={page} cause={cause} isCounted={isWhole} />
          </Card>
        ))}
      </ul>
    </>
  )
}

const Card = ({ page, cause, children }: PropsWithChildren<CauseProps>) => (
  <li class="card">
    <p class="count">{amount(cause.rows.length)}</p>
    <Failures failures={commonFailures(cause)} isUnreadable={cause.isUnreadable} />
    <p class="quiet">
      <Since page={page} cause={cause} />{' '}
      {page.query.get('cause') !== cause.id && (
        <a href={page.at('dead-letters', { cause: cause.id })}>
          Show <span class="unseen">the dead letters of this cause</span>
        </a>
      )}
    </p>
    <Lately page={page} cause={cause} />
    {children}
  </li>
)

/** The card on the cause's own page, where the list below has the other actions. */
export const CauseFacts = ({ page, cause }: CauseProps) => (
  <ul class="causes">
    <Card page={page} cause={cause}>
      <PostForm page={page} action="pause" hidden={{ back: page.here }}>
        <PauseButton page={page} cause={cause} />
      </PostForm>
    </Card>
  </ul>
)

/** The newest dead letter of a cause, with its stack trace. */
export async function Example({ page, cause: { rows, isUnreadable } }: CauseProps) {
  const [{ key } = { key: '' }] = rows
  if (isUnreadable) return null
  const last = (await page.subject.inbox.deadLetters.get(key))?.failedAttempts?.at(-1)
  const stacks = last?.failures.flatMap(({ message, stack }) => (stack === undefined ? [] : [{ message, stack }])) ?? []
  return (
    <details id="example">
      <summary>The newest example, with its stack trace</summary>
      {stacks.slice(0, shownFailures).map(({ message, stack }) => (
        <pre dir="ltr">{visible(`${cut(message, 500)}\n${stack}`)}</pre>
      ))}
      <p>
        {stacks.length === 0 && 'No stack trace of your code was stored. '}
        <a href={page.at('event', { key })}>Open the event</a>
      </p>
    </details>
  )
}

function Since({ page: { now }, cause }: CauseProps) {
  const { rows } = cause
  const [newest] = rows
  if (newest === undefined) return null
  const first = findOldest(rows.map(({ firstFailure }) => firstFailure))
  return (
    <>
      {listTypes(cause)}first <Ago at={first.at} now={now} />
      {first.mayBeOlder && ' or earlier'}, last <Ago at={newest.diedAt} now={now} />
    </>
  )
}

function Lately({ page: { now }, cause: { rows } }: CauseProps) {
  const hours = byHour(
    rows.map(({ firstFailure }) => firstFailure),
    now,
  )
  return (
    <div class="lately quiet">
      <Drawing values={hours} tone="bad" />
      <p>
        <b>{amount(hours[23] ?? 0)}</b> in the last hour <br />
        <b>{amount(hours[22] ?? 0)}</b> in the hour before
      </p>
    </div>
  )
}

const shownFailures = 3

interface FailuresProps {
  readonly failures: readonly HandlerFailure[]
  readonly isUnreadable: boolean
}

export function Failures({ failures, isUnreadable }: FailuresProps) {
  const who = (handler: string) =>
    isUnreadable ? 'Could not be parsed' : handler === 'none' ? 'No handler ran' : handler
  return (
    <div class="reason">
      {failures.slice(0, shownFailures).map(({ handler, message }) => (
        <p>
          <strong>
            <Foreign text={who(handler)} longest={60} />
          </strong>
          : <Foreign text={message} longest={250} />
        </p>
      ))}
      {failures.length > shownFailures && <p>and {counted(failures.length - shownFailures, 'more handler')}</p>}
    </div>
  )
}

function listTypes({ rows }: Cause): string {
  const types = new Set(rows.flatMap(({ type }) => type ?? []))
  const [first] = types
  if (first === undefined) return ''
  return `${cut(types.size <= 3 ? [...types].join(', ') : `${first} and ${types.size - 1} other types`, 200)}, `
}

/** Replays or discards all dead letters of a cause up to the newest shown, even past `groupedLimit`. */
function CauseActions({ page, cause, isCounted }: CauseProps & { readonly isCounted: boolean }) {
  const { id, rows } = cause
  const until = String(rows[0]?.diedAt.getTime())
  return (
    <PostForm page={page} action="replay" hidden={{ cause: id, until, back: page.here }}>
      <AllButtons page={page} count={isCounted ? rows.length : undefined} isUnreadable={cause.isUnreadable} />
      <PauseButton page={page} cause={cause} />
    </PostForm>
  )
}

/** What a replay of unreadable deliveries can and cannot do. */
export const whyUnreadable =
  'Parsing again helps only after you have deployed a version of this package, or of your sender, that can parse it. A body ' +
  'that is not JSON cannot be repaired here: have the service send it again, and discard this one.'

interface AllButtonsProps {
  readonly page: PageState
  readonly scope?: 'found' | 'all'
  /** `undefined` if there are more than were counted. */
  readonly count: number | undefined
  /** True if they are deliveries that could not be parsed. */
  readonly isUnreadable?: boolean | undefined
}

export function AllButtons({ page, scope = 'found', count, isUnreadable = false }: AllButtonsProps) {
  const all = count === undefined ? 'all' : count === 1 ? 'it' : `all ${amount(count)}`
  return (
    <>
      {isUnreadable && <p class="quiet">{whyUnreadable}</p>}
      <button type="submit" name="scope" value={scope} class={isUnreadable ? 'secondary' : 'primary'}>
        {isUnreadable ? `Parse ${all} again` : `Replay ${all}`}
      </button>
      <button type="submit" name="scope" value={scope} class="secondary" formaction={page.at('discard')}>
        Discard {all}…
      </button>
    </>
  )
}

/** Pauses the first failing handler, so it adds no dead letters until it is fixed. */
function PauseButton({ page, cause: { rows, isUnreadable } }: CauseProps) {
  const { handler = 'none' } = rows[0]?.failures[0] ?? {}
  const isOffered = page.subject.inbox.pauses !== undefined && !isUnreadable && handler !== 'none'
  if (!isOffered || cut(handler, 60) !== handler) return null
  return (
    <button type="submit" class="secondary" formaction={page.at('pause')} name="handler" value={handler}>
      Pause {handler}
    </button>
  )
}
