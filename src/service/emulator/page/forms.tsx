import type { PropsWithChildren } from 'hono/jsx'
import type { PageState } from './page-state.ts'
import { makeAddress } from './view.ts'

interface ActionFormProps {
  readonly page: PageState
  /** The path below `/page/` to post to. */
  readonly action: string
  readonly class?: string
}

/** A form for an action, with the error if it was rejected. Returns to the same view. */
export function ActionForm({ page, action, children, ...rest }: PropsWithChildren<ActionFormProps>) {
  const id = `form-${action.replaceAll('/', '-')}`
  const rejected = page.formError?.action === action
  return (
    <form
      id={id}
      method="post"
      action={`${makeAddress(page.view, {}, `/page/${action}`)}#${id}`}
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

interface DisclosureProps {
  readonly page: PageState
  readonly label: string
  /** Item the form is about. Visually hidden. */
  readonly subject: string
  /** The action of the form inside. Rendered open if that action was rejected. */
  readonly action: string
}

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
  readonly consequence: string
}

/** Deletes something. Opening the form is the confirmation. */
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
