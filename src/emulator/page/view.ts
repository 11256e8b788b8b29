import { type SendingState, sendingStates } from '../sending/sending.ts'

const lists = ['webhooks', 'media', 'deliveries', 'api-keys'] as const

/** The lists that are shown page by page. */
export type ListName = (typeof lists)[number]

/** What of the emulator is looked at. It is the query of the page's address, so that it can be kept and gone back to. */
export interface View {
  /** Show the sendings in this state only. */
  readonly state?: SendingState | undefined
  /** Show the sendings to this webhook only. */
  readonly webhook?: string | undefined
  /** The sending that is open. */
  readonly sending?: string | undefined
  /** What came of the last action, to be shown once. */
  readonly notice?: string
  /** Which page of each list is shown, from 1. */
  readonly pages: Readonly<Partial<Record<ListName, number>>>
}

/** Reads the query of an address. What makes no sense there is passed over. */
export function viewOf(query: Readonly<Record<string, string>>): View {
  return {
    state: sendingStates.find((state) => state === query['state']),
    webhook: query['webhook'] || undefined,
    sending: query['sending'] || undefined,
    pages: Object.fromEntries(lists.map((list) => [list, pageNumber(query[list])])),
  }
}

/**
 * The address of a view.
 * @param change what is different there
 */
export function addressOf(view: View, change: Partial<View> = {}, path = '/'): string {
  const { pages, ...rest } = { ...view, ...change }
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(rest)) if (value !== undefined) query.set(name, value)
  for (const [name, page] of Object.entries(pages)) if (page > 1) query.set(name, String(page))
  return query.size === 0 ? path : `${path}?${query}`
}

/** The address at which a sending is open. */
export const addressOfSending = (view: View, sending: string): string =>
  `${addressOf(view, { sending })}#sending-${sending}`

function pageNumber(text = ''): number {
  const page = Number(text)
  return Number.isSafeInteger(page) && page > 0 ? page : 1
}
