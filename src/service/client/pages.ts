/** Maximum page size for webhooks. Observed, not documented: the same for API keys. */
const pageSize = 100

interface Page<Item> {
  readonly items: readonly Item[]
  /** The list's length according to the service. */
  readonly total: number | undefined
}

/**
 * Yields each item of a list once, page by page.
 *
 * Pages overlap by one item: each starts with the last item of the page before. If it doesn't, the list has shifted,
 * for example because the caller deletes while iterating. Then restart at the top and skip items already seen. Ends
 * when a pass yields nothing new, whatever totals and pages the service returns.
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
    // A short page may just be the service's smaller page size: it is the last only if the total agrees. A total below
    // what was read is wrong: ignore it.
    const isLast = items.length < pageSize && end === total
    const isEmpty = items.length <= (last === undefined ? 0 : 1)
    if (isLast || isEmpty || end > seen.size) return
    // A page of one item can't overlap: there would be no room for a new item.
    const repeats = items.length > 1
    offset = repeats ? end - 1 : end
    last = repeats ? items.at(-1) : undefined
  }
}
