import { ActionForm } from './action-form.tsx'
import { Disclosure } from './disclosure.tsx'
import type { PageState } from './page-state.ts'

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
