import type { PageState } from '../page/page-state.ts'

/** Returns the page a form was sent from. Anything but a route of this dashboard is ignored (open redirect). */
export function placeIn(form: URLSearchParams): string {
  const back = form.get('back') ?? ''
  return /^[a-z-]*(\?.*)?$/.test(back) ? back : ''
}

export function makeAddress(page: PageState, place: string, query: Readonly<Record<string, string>> = {}): string {
  const [route = '', search] = place.split(/\?(.*)/s)
  return page.at(route, { ...Object.fromEntries(new URLSearchParams(search)), ...query })
}
