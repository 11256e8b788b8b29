import type { PropsWithChildren } from 'hono/jsx'
import type { PageState } from './page-state.ts'
import { addressOf } from './view.ts'

interface ActionFormProps {
  readonly page: PageState
  /** The path below `/page/` that the form is sent to. */
  readonly action: string
  readonly class?: string
}

/** A form for an action, with its error if it was rejected. It leads back to the same view. */
export function ActionForm({ page, action, children, ...rest }: PropsWithChildren<ActionFormProps>) {
  const id = `form-${action.replaceAll('/', '-')}`
  const rejected = page.formError?.action === action
  return (
    <form
      id={id}
      method="post"
      action={`${addressOf(page.view, {}, `/page/${action}`)}#${id}`}
      class={rest.class}
      aria-describedby={rejected ? `${id}-error` : undefined}
    >
      {children}
      {rejected && (
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
  /** The signing schemes for which the field is shown. */
  readonly schemes?: string
}

/** A text field with its label. */
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
  /** The values, each with a label where it differs from the value. */
  readonly options: readonly (readonly [value: string, label?: string])[]
  readonly schemes?: string
}

/** A choice among values. The first one is selected unless `value` is among them. */
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

/** A checkbox with its label. */
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
  readonly label: string
  /** The name of the thing it concerns, for screen readers only. */
  readonly subject: string
  /** The action of the form inside. The form is open when the action was rejected. */
  readonly action: string
}

/** A form that opens on a click. */
export function Disclosure({ page, label, subject, action, children }: PropsWithChildren<DisclosureProps>) {
  return (
    <details id={`disclosure-${action.replaceAll('/', '-')}`} open={page.formError?.action === action}>
      <summary>
        {label} <span class="unseen">{subject}</span>
      </summary>
      {children}
    </details>
  )
}

interface DeletionProps {
  readonly page: PageState
  readonly name: string
  readonly action: string
  /** A sentence about the effect. */
  readonly consequence: string
}

/** A form that deletes something. Opening it is the confirmation. */
export function Deletion({ page, name, action, consequence }: DeletionProps) {
  return (
    <Disclosure page={page} label="Delete" subject={name} action={action}>
      <ActionForm page={page} action={action}>
        <p>{consequence} This cannot be undone.</p>
        <button type="submit" class="danger">
          Delete {name}
        </button>
      </ActionForm>
    </Disclosure>
  )
}
