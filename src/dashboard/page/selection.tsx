import type { Child } from 'hono/jsx'
import { keysOf } from '../acting/selection.ts'
import { amount, ReasonField } from './elements.tsx'
import type { PageState } from './page-state.ts'

interface RangeProps {
  /** The number of events before the first one that is shown. */
  readonly begin: number
  readonly count: number
  /** The number of all, or the text for it. Absent if it is not known. */
  readonly total: number | string | undefined
  /** The address of all of the list as lines of JSON. */
  readonly lines: string
}

/** The part of a list that a page shows, such as `1–50 of 2,210`, and a link to save all of it. */
export const Range = ({ begin, count, total, lines }: RangeProps) => (
  <p class="quiet">
    {amount(begin + 1)}–{amount(begin + count)}
    {total !== undefined && ` of ${typeof total === 'number' ? amount(total) : total}`}{' '}
    <a href={lines} download>
      Save as JSON lines
    </a>
  </p>
)

/** Counts the events that a retry of all would start, if something is paused. Otherwise it starts all that are retrying. */
export async function retryable({ subject, now: until, pauses }: PageState, type?: string) {
  if ((await pauses()).length === 0) return undefined
  return (await keysOf(subject, 'retry', { scope: 'events', state: 'retrying', type, until })).length
}

export const ReplaySelected = () => (
  <button type="submit" class="primary">
    Replay the selected
  </button>
)

interface SelectionFormProps {
  readonly page: PageState
  /** The action of its first button. */
  readonly action?: 'replay' | 'retry'
  /** Says what "all" is. */
  readonly hidden?: Readonly<Record<string, string>>
  /** Buttons that act on the selected events. The first one is also that of the Enter key. */
  readonly some: Child
  /** Buttons that act on all events of the list, its other pages included. They are shown while none is selected. */
  readonly all?: Child
  readonly children: Child
}

/**
 * A list with the buttons that act on it, which stay in view. Its id is that of its place: another page of it is another
 * list. A reader who may not act gets the list only.
 */
export const SelectionForm = ({ page, action = 'replay', hidden = {}, some, all, children }: SelectionFormProps) => (
  <div class="list" id={`list:${page.here}`}>
    <p class="paused quiet" role="status" />
    {page.mayAct ? (
      <form method="post" action={page.at(action)} class="selection">
        {Object.entries({ ...hidden, back: page.here }).map(([name, value]) => (
          <input type="hidden" name={name} value={value} />
        ))}
        {children}
        <div class="inline actions">
          <div class="row some">
            {some}
            <button type="reset">Clear</button>
          </div>
          <div class="row all">{all || <p class="quiet">Select events to act on them.</p>}</div>
          <ReasonField />
        </div>
      </form>
    ) : (
      children
    )}
  </div>
)
