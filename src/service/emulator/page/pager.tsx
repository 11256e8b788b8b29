import { Pager, pageAt } from '../../../internal/page/pager.tsx'
import type { PageState } from './page-state.ts'
import { type ListName, makeAddress } from './view.ts'

/** Returns the list's page in this view, or the last one if there are fewer. */
export const findPage = ({ view }: PageState, list: ListName, total: number, limit: number) =>
  pageAt(view.pages[list] ?? 1, total, limit)

interface ListPagerProps {
  readonly page: PageState
  readonly list: ListName
  readonly current: number
  readonly last: number
}

export function ListPager({ page: { view }, list, current, last }: ListPagerProps) {
  const address = (number: number) => `${makeAddress(view, { pages: { ...view.pages, [list]: number } })}#${list}-title`
  return <Pager of={list} current={current} last={last} address={address} />
}
