/** The largest page the service gives. */
const pageSize = 100

export interface Page<Item> {
  readonly items: readonly Item[]
  readonly total: number | undefined
}

/**
 * Every item of a list, once. Each page begins with the last item of the one before: when it does not, the list has
 * moved (what the loop deletes moves it), and is read again from its beginning without what has been seen. No total and
 * no page can make it go on for ever: it ends when it gets nowhere.
 */
export async function* everyItem<Item extends { readonly id: string }>(
  read: (range: { offset: number; limit: number }) => Promise<Page<Item>>,
): AsyncGenerator<Item, void, undefined> {
  const seen = new Set<string>()
  let seenAtBeginning = -1
  for (let offset = 0, last: Item | undefined; ; ) {
    const { items, total = 0 } = await read({ offset, limit: pageSize })
    const hasMoved = last !== undefined && items[0]?.id !== last.id
    for (const item of items) {
      if (seen.has(item.id)) continue
      seen.add(item.id)
      yield item
    }
    if (hasMoved) {
      if (seen.size === seenAtBeginning) return
      seenAtBeginning = seen.size
      offset = 0
      last = undefined
      continue
    }
    const end = offset + items.length
    const next = end - 1
    // Shorter than asked for may also be the service's idea of a page, if its total says so.
    if ((items.length < pageSize && end >= total) || next <= offset || next >= seen.size) return
    offset = next
    last = items.at(-1)
  }
}
