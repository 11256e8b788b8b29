import type { PageState } from '../page/page-state.ts'

/** The page from which a form was sent, if it is one of this dashboard. */
export function placeIn(form: URLSearchParams): string {
  const back = form.get('back') ?? ''
  return /^[a-z-]*(\?.*)?$/.test(back) ? back : ''
}

/** Makes the address of a place, with more in its query. */
export function addressOf(page: PageState, place: string, query: Readonly<Record<string, string>> = {}): string {
  const [route = '', search] = place.split(/\?(.*)/s)
  return page.at(route, { ...Object.fromEntries(new URLSearchParams(search)), ...query })
}
