import { foundBy } from '../shared/undocumented.ts'

/** Selects, sorts and pages records. The names are those of the API. */
export interface ListQuery<SortField extends string> {
  /**
   * The number of records to skip.
   * @defaultValue 0
   */
  readonly offset?: number
  /**
   * Maximum number of records to return.
   * @defaultValue 25
   */
  readonly limit?: number
  /** @defaultValue 'created_at' */
  readonly sort_by?: SortField
  /**
   * The direction. `desc` is exactly `asc` reversed.
   * @defaultValue 'asc'
   */
  readonly order_by?: 'asc' | 'desc'
  /** Text that a record's name has to contain. */
  readonly search?: string
}

/** A page of records. */
export interface Listed<Item> {
  readonly items: readonly Item[]
  /** The number of matching records on all pages. */
  readonly total: number
}

/**
 * Lists records. Other fields of the query have to equal those of a record.
 * @param items the records in order of creation, which decides between those that sort alike
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

// Texts are compared by code unit and not by language, so that the order is the same on every machine.
const compare = <Value>(a: Value, b: Value): number => (a < b ? -1 : a > b ? 1 : 0)
