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
  const refused = page.refusal?.action === action
  return (
    <form
      id={id}
      method="post"
      action={`${addressOf(page.view, {}, `/page/${action}`)}#${id}`}
      class={rest.class}
      aria-describedby={refused ? `${id}-refusal` : undefined}
    >
      {children}
      {refused && (
        <p class="refusal" role="alert" id={`${id}-refusal`}>
          <span aria-hidden="true">✕</span> {page.refusal?.message}
        </p>
      )}
    </form>
  )
}
