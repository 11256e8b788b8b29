import type { Child } from 'hono/jsx'
import type { Pause } from '../../inbox/reading.ts'
import type { Notice } from '../../page/notices.tsx'
import type { Reader } from '../access/access.ts'
import type { Subject } from '../subject.ts'

/** What every component of a page gets. */
export interface PageState {
  readonly subject: Subject
  readonly route: string
  readonly query: URLSearchParams
  readonly origin: string
  readonly now: Date
  /** If false, the page has no action forms. */
  readonly mayAct: boolean
  readonly user?: string
  readonly notice: Notice | undefined
  /** Reads the pauses, once per page. */
  pauses(): Promise<readonly Pause[]>
  /** Returns the URL of a page. Skips `undefined` values. */
  at(route: string, query?: Readonly<Record<string, string | undefined>>): string
  /** Route and query of this page, to return to it. */
  readonly here: string
}

/** A page of the dashboard. */
export interface Answer {
  readonly title: string
  readonly body: Child
  readonly status?: number
  /** No live updates: this page answers a POST, and has no URL. */
  readonly still?: boolean
  /** Without JavaScript, the browser reloads it. */
  readonly changes?: boolean
}

export function stateOf(
  subject: Subject,
  path: string,
  route: string,
  { origin, searchParams: given }: URL,
  reader: Reader,
): PageState {
  const query = new URLSearchParams(given)
  const notice = subject.notices.take(query.get('notice') ?? undefined)
  query.delete('notice')
  const here = query.size === 0 ? route : `${route}?${query}`
  let read: Promise<readonly Pause[]> | undefined
  const list = async () => (await subject.inbox.pauses?.list()) ?? []
  const pauses = () => (read ??= list())
  return { subject, route, query, origin, now: new Date(), ...reader, notice, pauses, at: addressesBelow(path), here }
}

function addressesBelow(path: string): PageState['at'] {
  return (route, query = {}) => {
    const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined)
    const search = given.length === 0 ? '' : `?${new URLSearchParams(given)}`
    return `${route === '' ? path || '/' : `${path}/${route}`}${search}`
  }
}
