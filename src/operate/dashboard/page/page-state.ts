import type { Child } from 'hono/jsx'
import type { InboxStats, Pause } from '../../../inbox/reading.ts'
import type { Notice } from '../../../internal/page/notices.tsx'
import type { Reader } from '../access/access.ts'
import { findRoute } from '../find-route.ts'
import type { OverdueReport } from '../reading/overdue-reports.ts'
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
  // Each reads the inbox once per page.
  stats(): Promise<InboxStats>
  pauses(): Promise<readonly Pause[]>
  overdue(): Promise<OverdueReport>
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

/** @param path where the dashboard is mounted */
export function makePageState(
  subject: Subject,
  path: string,
  { origin, pathname, searchParams: given }: URL,
  reader: Reader,
): PageState {
  const route = findRoute(pathname, path)
  const query = new URLSearchParams(given)
  const notice = subject.notices.take(query.get('notice') ?? undefined)
  query.delete('notice')
  const here = query.size === 0 ? route : `${route}?${query}`
  const stats = once(async () => subject.inbox.stats())
  const pauses = once(async () => (await subject.inbox.pauses?.list()) ?? [])
  const overdue = once(async () => subject.overdue.read(await stats()))
  const reads = { stats, pauses, overdue }
  return { subject, route, query, origin, now: new Date(), ...reader, notice, ...reads, at: addressesBelow(path), here }
}

function once<T>(read: () => Promise<T>): () => Promise<T> {
  let reading: Promise<T> | undefined
  return () => (reading ??= read())
}

function addressesBelow(path: string): PageState['at'] {
  return (route, query = {}) => {
    const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined)
    const search = given.length === 0 ? '' : `?${new URLSearchParams(given)}`
    return `${route === '' ? path || '/' : `${path}/${route}`}${search}`
  }
}
