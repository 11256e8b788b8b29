import { foundBy } from '../shared/undocumented.ts'

/** Selects, sorts and pages records. Named like the API's parameters. */
export interface ListQuery<SortField extends string> {
  /** @defaultValue 0 */
  readonly offset?: number
  /** @defaultValue 25 */
  readonly limit?: number
  /** @defaultValue 'created_at' */
  readonly sort_by?: SortField
  /** `desc` is exactly `asc` reversed. Default: `asc`. */
  readonly order_by?: 'asc' | 'desc'
  /** Matches records whose name contains it. */
  readonly search?: string
}

export interface ListPage<Item> {
  readonly items: readonly Item[]
  /** Matching records on all pages. */
  readonly total: number
}

/**
 * Lists records. Other query fields must equal the record's.
 * @param items in order of creation, which breaks ties
 */
export function list<Item extends { readonly name: string; readonly created_at: string }>(
  items: readonly Item[],
  query: ListQuery<keyof Item & string> & Partial<Item>,
): ListPage<Item> {
  const { offset = 0, limit = 25, sort_by = 'created_at', order_by = 'asc', search = '', ...filter } = query
  const wanted = Object.entries(filter) as [keyof Item, unknown][]
  const matching = items.filter(
    (item) => foundBy(item.name, search) && wanted.every(([field, value]) => item[field] === value),
  )
  const sorted = matching.toSorted((a, b) => compare(a[sort_by], b[sort_by]))
  if (order_by === 'desc') sorted.reverse()
  return { items: sorted.slice(offset, offset + limit), total: matching.length }
}

// Compared by code unit, so the order doesn't depend on the machine's language.
const compare = <Value>(a: Value, b: Value): number => (a < b ? -1 : a > b ? 1 : 0)
