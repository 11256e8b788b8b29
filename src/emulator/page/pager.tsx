import { Pager, pageAt } from '../../page/pager.tsx'
import type { PageState } from './page-state.ts'
import { addressOf, type ListName } from './view.ts'

/** Finds the page of a list that the view asks for, and at most the last one. */
export const pageOf = ({ view }: PageState, list: ListName, total: number, limit: number) =>
  pageAt(view.pages[list] ?? 1, total, limit)

interface ListPagerProps {
  readonly page: PageState
  readonly list: ListName
  readonly current: number
  readonly last: number
}

/** Links to the previous and the next page of a list of the view. */
export function ListPager({ page: { view }, list, current, last }: ListPagerProps) {
  const address = (number: number) => `${addressOf(view, { pages: { ...view.pages, [list]: number } })}#${list}-title`
  return <Pager of={list} current={current} last={last} address={address} />
}
