import type { PropsWithChildren } from 'hono/jsx'
import type { PageState } from './page-state.ts'

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
    <details id={`disclosure-${action.replaceAll('/', '-')}`} open={page.refusal?.action === action}>
      <summary>
        {words} <span class="unseen">{of}</span>
      </summary>
      {children}
    </details>
  )
}
