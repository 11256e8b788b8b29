import type { Child } from 'hono/jsx'
import type { Pause } from '../../inbox/reading.ts'
import type { Notice } from '../../page/notices.tsx'
import type { Reader } from '../access/access.ts'
import type { Subject } from '../subject.ts'

/** The data that the components of a page render. */
export interface PageState {
  readonly subject: Subject
  /** The name of the page, such as `events`. */
  readonly route: string
  readonly query: URLSearchParams
  /** The origin of the page's address. */
  readonly origin: string
  readonly now: Date
  /** `true` if the reader may act. Otherwise the page has no forms that do. */
  readonly mayAct: boolean
  /** The reader's name, if `authorize` tells it. */
  readonly user?: string
  /** The result of the last action. */
  readonly notice: Notice | undefined
  /** What is paused, read once for the page. */
  pauses(): Promise<readonly Pause[]>
  /** Makes the address of a page. Values that are `undefined` are left out. */
  at(route: string, query?: Readonly<Record<string, string | undefined>>): string
  /** The place of this page below the path of the dashboard, to return to it. */
  readonly here: string
}

/** A page of the dashboard. */
export interface Answer {
  readonly title: string
  readonly body: Child
  readonly status?: number
  /** `true` for the answer to a form, which its address does not lead to: it is not updated. */
  readonly still?: boolean
  /** `true` for a page that a browser without script should read again. */
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
