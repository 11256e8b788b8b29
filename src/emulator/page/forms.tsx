import type { PropsWithChildren } from 'hono/jsx'
import type { PageState } from './page-state.ts'
import { addressOf } from './view.ts'

interface ActionFormProps {
  readonly page: PageState
  /** The path below `/page/` that it is sent to. */
  readonly action: string
  readonly class?: string
}

/** A form that does something, with why it was refused, if it was. It leads back to itself, in the same view. */
export function ActionForm({ page, action, children, ...rest }: PropsWithChildren<ActionFormProps>) {
  const id = `form-${action.replaceAll('/', '-')}`
  const refused = page.formError?.action === action
  return (
    <form
      id={id}
      method="post"
      action={`${addressOf(page.view, {}, `/page/${action}`)}#${id}`}
      class={rest.class}
      aria-describedby={refused ? `${id}-error` : undefined}
    >
      {children}
      {refused && (
        <p class="form-error" role="alert" id={`${id}-error`}>
          <span aria-hidden="true">✕</span> {page.formError?.message}
        </p>
      )}
    </form>
  )
}

interface FieldProps {
  readonly label: string
  readonly name: string
  readonly value?: string | undefined
  readonly placeholder?: string
  readonly inputmode?: 'url' | 'numeric'
  readonly required?: boolean
  readonly maxlength?: number
  /** The signing schemes that it is shown for. */
  readonly schemes?: string
}

/** A line of text to fill in. */
export function Field({ label, schemes, ...input }: FieldProps) {
  return (
    <label class="field" data-schemes={schemes}>
      <span>{label}</span>
      <input type="text" autocomplete="off" spellcheck={false} {...input} />
    </label>
  )
}

interface ChoiceProps {
  readonly label: string
  readonly name: string
  readonly value?: string | undefined
  /** Each with its words, where they differ from it. */
  readonly options: readonly (readonly [value: string, words?: string])[]
  readonly schemes?: string
}

/** One of a few values. The first, unless `value` is among them. */
export function Choice({ label, name, value, options, schemes }: ChoiceProps) {
  const chosen = options.find(([option]) => option === value) ?? options[0]
  return (
    <label class="field" data-schemes={schemes}>
      <span>{label}</span>
      <select name={name}>
        {options.map((option) => (
          <option value={option[0]} selected={option === chosen}>
            {option[1] ?? option[0]}
          </option>
        ))}
      </select>
    </label>
  )
}

/** Yes or no. */
export function Tick({ label, name, checked }: { label: string; name: string; checked: boolean }) {
  return (
    <label class="tick">
      <input type="checkbox" name={name} checked={checked} />
      <span>{label}</span>
    </label>
  )
}

interface DisclosureProps {
  readonly page: PageState
  readonly words: string
  /** Of what it is: what a screen reader says after the words. */
  readonly of: string
  /** The action whose form is inside. It is open when that was refused. */
  readonly action: string
}

/** Something to be done that takes more than a button. */
export function Disclosure({ page, words, of, action, children }: PropsWithChildren<DisclosureProps>) {
  return (
    <details id={`disclosure-${action.replaceAll('/', '-')}`} open={page.formError?.action === action}>
      <summary>
        {words} <span class="unseen">{of}</span>
      </summary>
      {children}
    </details>
  )
}

interface DeletionProps {
  readonly page: PageState
  readonly name: string
  readonly action: string
  /** What comes of it. */
  readonly consequence: string
}

/** Deletes something, once that was confirmed by opening it. */
export function Deletion({ page, name, action, consequence }: DeletionProps) {
  return (
    <Disclosure page={page} words="Delete" of={name} action={action}>
      <ActionForm page={page} action={action}>
        <p>{consequence} This cannot be undone.</p>
        <button type="submit" class="danger">
          Delete {name}
        </button>
      </ActionForm>
    </Disclosure>
  )
}
