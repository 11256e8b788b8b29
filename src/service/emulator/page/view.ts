import { type SendingState, sendingStates } from '../sending/sending.ts'

const lists = ['webhooks', 'media', 'deliveries', 'api-keys'] as const

export type ListName = (typeof lists)[number]

/** What the page shows. Kept in the query of its address, so it can be bookmarked. */
export interface View {
  readonly state?: SendingState | undefined
  readonly webhook?: string | undefined
  readonly sending?: string | undefined
  readonly notice?: string
  /** The current page of each list, from 1. */
  readonly pages: Readonly<Partial<Record<ListName, number>>>
}

/** Reads a view from a query. Ignores invalid values. */
export function readView(query: Readonly<Record<string, string>>): View {
  return {
    state: sendingStates.find((state) => state === query['state']),
    webhook: query['webhook'] || undefined,
    sending: query['sending'] || undefined,
    pages: Object.fromEntries(lists.map((list) => [list, pageNumber(query[list])])),
  }
}

/** @param change overrides fields of `view` */
export function makeAddress(view: View, change: Partial<View> = {}, path = '/'): string {
  const { pages, ...rest } = { ...view, ...change }
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(rest)) if (value !== undefined) query.set(name, value)
  for (const [name, page] of Object.entries(pages)) if (page > 1) query.set(name, String(page))
  return query.size === 0 ? path : `${path}?${query}`
}

export const addressOfSending = (view: View, sending: string): string =>
  `${makeAddress(view, { sending })}#sending-${sending}`

function pageNumber(text = ''): number {
  const page = Number(text)
  return Number.isSafeInteger(page) && page > 0 ? page : 1
}
