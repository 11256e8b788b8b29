import type { Child } from 'hono/jsx'
import { type OverdueOutcome, overdueText } from '../../../handlers/overdue.ts'
import { shortId } from '../../../inbox/operations/operations.ts'
import type { EventState } from '../../../inbox/reading.ts'
import { Mark } from '../../../internal/page/elements.tsx'
import { Field } from '../../../internal/page/fields.tsx'
import type { PageState } from './page-state.ts'

const shapes: Record<EventState, string> = { waiting: '○', running: '→', retrying: '↻', dead: '✕', handled: '✓' }
const overdueShapes: Record<OverdueOutcome['outcome'], string> = { missing: '!', came: '+', unknown: '?' }

interface StateMarkProps {
  readonly state: EventState
  readonly overdue?: OverdueOutcome | undefined
  readonly isPaused?: boolean
}

/** The state of an event. For an overdue event, also whether the awaited event came later. */
export const StateMark = ({ state, overdue, isPaused }: StateMarkProps) => (
  <>
    {overdue && (
      <span class={`state ${overdue.outcome === 'came' ? 'came' : 'bad'}`}>
        <span aria-hidden="true">{overdueShapes[overdue.outcome]}</span> <span>{overdueText(overdue)}</span>{' '}
      </span>
    )}
    <Mark
      state={isPaused ? 'paused' : overdue && state === 'handled' ? 'alert ran' : state}
      shape={isPaused ? '‖' : shapes[state]}
    />
  </>
)

/** Cuts a text to `longest` characters and `2 * longest` bytes of HTML, between code points. Escapes take six bytes. */
export function cut(text: string, longest: number): string {
  let [end, bytes] = [0, 0]
  for (const character of text) {
    bytes += /["&'<>]/.test(character) ? 6 : character > '\x7f' ? 2 + character.length : 1
    if (bytes > 2 * longest || end + character.length > longest) break
    end += character.length
  }
  return end < text.length ? `${text.slice(0, end)}…` : text
}

/** Text from outside, isolated: it can't change the direction of the text around it. */
export const Foreign = ({ text, longest = 200 }: { text: string; longest?: number }) => <bdi>{cut(text, longest)}</bdi>

/** Short id of an event key (8 hex digits), accepted by the search. */
export const ShortId = async ({ of }: { of: string }) => <code>{await shortId(of)}</code>

export const amount = (count: number): string => count.toLocaleString('en')

/** `1 dead letter`, `1,200 dead letters`. */
export const counted = (count: number, thing: string): string => `${amount(count)} ${thing}${count === 1 ? '' : 's'}`

interface PostFormProps {
  readonly page: PageState
  readonly action: string
  readonly hidden: Readonly<Record<string, string>>
  readonly children?: Child
}

/** A form for actions. Renders nothing for a read-only reader. */
export const PostForm = ({ page, action, hidden, children }: PostFormProps) =>
  page.mayAct ? (
    <form method="post" action={page.at(action)} class="inline">
      {Object.entries(hidden).map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
      {children}
    </form>
  ) : null

export const ReasonField = ({ value }: { value?: string | undefined }) => (
  <Field label="Reason (optional)" name="reason" maxlength={500} value={value} />
)

/** Scroll container. Focusable, so the keyboard can scroll it. */
export const Scrolling = ({ label, children }: { label: string; children?: Child }) => (
  <section class="scroll" tabindex={0} aria-label={label}>
    {children}
  </section>
)
