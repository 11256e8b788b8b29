import type { PageState } from './page-state.ts'
import { addressOf, type ListName } from './view.ts'

/** The page of a list that is looked at. Beyond the last there is the last. */
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

/** Leads to the pages before and after. There is none where one page holds all. */
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
