import type { Child } from 'hono/jsx'
import { readKeys } from '../acting/selection.ts'
import { amount, ReasonField } from './elements.tsx'
import type { PageState } from './page-state.ts'

interface RangeProps {
  readonly begin: number
  readonly count: number
  /** A number, or text such as `at least 10,000`. Absent if unknown. */
  readonly total: number | string | undefined
  /** URL of the whole list as JSON lines. */
  readonly lines: string
}

/** Such as `1–50 of 2,210`, with a download link. */
export const Range = ({ begin, count, total, lines }: RangeProps) => (
  <p class="quiet">
    {amount(begin + 1)}–{amount(begin + count)}
    {total !== undefined && ` of ${typeof total === 'number' ? amount(total) : total}`}{' '}
    <a href={lines} download>
      Save as JSON lines
    </a>
  </p>
)

/** Counts what "Retry all" would start. `undefined` if nothing is paused: all retrying events. */
export async function retryable({ subject, now: until, pauses }: PageState, type?: string) {
  if ((await pauses()).length === 0) return undefined
  return (await readKeys(subject, 'retry', { scope: 'events', state: 'retrying', type, until })).length
}

export const ReplaySelected = () => (
  <button type="submit" class="primary">
    Replay the selected
  </button>
)

interface SelectionFormProps {
  readonly page: PageState
  readonly action?: 'replay' | 'retry'
  /** Defines "all". */
  readonly hidden?: Readonly<Record<string, string>>
  /** Buttons for the selected events. Enter presses the first one. */
  readonly some: Child
  /** Buttons for the whole list, all pages included. Shown while nothing is selected. */
  readonly all?: Child
  readonly children: Child
}

/** A list with sticky action buttons; no buttons for a read-only reader. The id names the page: morph keys on it. */
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
