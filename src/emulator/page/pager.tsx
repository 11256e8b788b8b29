import type { PageState } from './page-state.ts'
import { addressOf, type ListName } from './view.ts'

/** Finds the page of a list that the view asks for, and at most the last one. */
export function pageOf({ view }: PageState, list: ListName, total: number, limit: number) {
  const last = Math.max(1, Math.ceil(total / limit))
  const current = Math.min(view.pages[list] ?? 1, last)
  return { current, last, offset: (current - 1) * limit, limit }
}

interface PagerProps {
  readonly page: PageState
  readonly list: ListName
  readonly current: number
  readonly last: number
}

/** Links to the previous and the next page of a list. It is absent when there is only one page. */
export function Pager({ page: { view }, list, current, last }: PagerProps) {
  if (last === 1) return null
  const address = (number: number) => `${addressOf(view, { pages: { ...view.pages, [list]: number } })}#${list}-title`
  return (
    <nav class="pager" aria-label={`Pages of ${list}`}>
      {current > 1 ? <a href={address(current - 1)}>← Newer</a> : <span />}
      <span>
        Page {current} of {last}
      </span>
      {current < last ? <a href={address(current + 1)}>Older →</a> : <span />}
    </nav>
  )
}
