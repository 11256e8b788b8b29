import { foundBy } from '../shared/undocumented.ts'

/** What to list, in the words of the API. */
export interface ListQuery<SortField extends string> {
  /**
   * Records to skip.
   * @defaultValue 0
   */
  readonly offset?: number
  /** @defaultValue 25 */
  readonly limit?: number
  /** @defaultValue 'created_at' */
  readonly sort_by?: SortField
  /**
   * `desc` is `asc` read backwards.
   * @defaultValue 'asc'
   */
  readonly order_by?: 'asc' | 'desc'
  /** Only those with this in their name. */
  readonly search?: string
}

/** A page of records. */
export interface Listed<Item> {
  readonly items: readonly Item[]
  /** How many match, on this page and off it. */
  readonly total: number
}

/**
 * Lists records. What a query holds beyond {@link ListQuery} are fields that have to be equal.
 * @param items in the order in which they were created, which decides between those that sort alike
 */
export function list<Item extends { readonly name: string; readonly created_at: string }>(
  items: readonly Item[],
  query: ListQuery<keyof Item & string> & Partial<Item>,
): Listed<Item> {
  const { offset = 0, limit = 25, sort_by = 'created_at', order_by = 'asc', search = '', ...filter } = query
  const wanted = Object.entries(filter) as [keyof Item, unknown][]
  const matching = items.filter(
    (item) => foundBy(item.name, search) && wanted.every(([field, value]) => item[field] === value),
  )
  const sorted = matching.toSorted((a, b) => compare(a[sort_by], b[sort_by]))
  if (order_by === 'desc') sorted.reverse()
  return { items: sorted.slice(offset, offset + limit), total: matching.length }
}

// By code unit, not by language: the same on every machine.
const compare = <Value>(a: Value, b: Value): number => (a < b ? -1 : a > b ? 1 : 0)
