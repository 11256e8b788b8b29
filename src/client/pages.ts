/** Maximum size of a page of webhooks. That of API keys is not documented, and was observed to be the same. */
const pageSize = 100

/** One page of a list. */
interface Page<Item> {
  readonly items: readonly Item[]
  /** The length of the whole list, as the service counts it. */
  readonly total: number | undefined
}

/**
 * Yields every item of a list once, page by page.
 *
 * Each page begins with the last item of the previous page. If it does not, the list has shifted, for example because
 * the caller deletes items while iterating. The list is then read again from the start, and items seen before are
 * skipped. The iteration ends when a pass yields nothing new, for any totals and pages that the service returns.
 */
export async function* everyItem<Item extends { readonly id: string }>(
  read: (range: { offset: number; limit: number }) => Promise<Page<Item>>,
): AsyncGenerator<Item, void, undefined> {
  const seen = new Set<string>()
  let seenAtRestart = -1
  for (let offset = 0, last: Item | undefined; ; ) {
    const { items, total } = await read({ offset, limit: pageSize })
    const hasShifted = last !== undefined && items[0]?.id !== last.id
    for (const item of items) {
      if (seen.has(item.id)) continue
      seen.add(item.id)
      yield item
    }
    if (hasShifted) {
      if (seen.size === seenAtRestart) return
      seenAtRestart = seen.size
      offset = 0
      last = undefined
      continue
    }
    const end = offset + items.length
    // A short page is the last one only if the total says so: the service may use smaller pages than asked for. A total
    // that is less than what was read is wrong, and says nothing.
    const isLast = items.length < pageSize && end === total
    const isEmpty = items.length <= (last === undefined ? 0 : 1)
    if (isLast || isEmpty || end > seen.size) return
    // A page of one item cannot repeat the previous item: it would hold nothing else.
    const repeats = items.length > 1
    offset = repeats ? end - 1 : end
    last = repeats ? items.at(-1) : undefined
  }
}
