import { WebhookError } from '../../errors.ts'

/** The options of {@link Records}. */
export interface RecordsOptions<Item> {
  /** The plural for error messages, such as `events`. */
  readonly name: string
  readonly hasEnded: (item: Item) => boolean
  /** Maximum number of unfinished items. */
  readonly maxUnfinished: number
  /** The number of ended items to keep. The oldest are dropped first. */
  readonly maxEnded: number
  /** Called with the id of each item that is added or changes. */
  readonly onChange: (id: string) => void
}

/** Keeps every unfinished item, and the items that ended last. */
export class Records<Item extends { readonly id: string }> {
  readonly #options: RecordsOptions<Item>
  /** In order of creation. */
  readonly #items = new Map<string, Item>()
  /** The ids of ended items, in the order in which they ended. */
  readonly #ended = new Set<string>()
  #idleWaiters: (() => void)[] = []

  constructor(options: RecordsOptions<Item>) {
    this.#options = options
  }

  /** @throws WebhookError `overloaded` when too many items are unfinished */
  checkRoom(): void {
    const { name, maxUnfinished } = this.#options
    if (this.#unfinished < maxUnfinished) return
    throw new WebhookError('overloaded', `too many unfinished ${name}: the limit is ${maxUnfinished}`)
  }

  /** Adds an item, or replaces the one with the same id. */
  put(item: Item): void {
    const { hasEnded, maxEnded, onChange } = this.#options
    this.#items.set(item.id, item)
    if (hasEnded(item)) this.#ended.add(item.id)
    if (this.#ended.size > maxEnded) this.#dropOldest()
    onChange(item.id)
    if (this.#unfinished === 0) this.resolveIdle()
  }

  get(id: string): Item | undefined {
    return this.#items.get(id)
  }

  /** Lists the items, newest first. */
  list(): readonly Item[] {
    return [...this.#items.values()].reverse()
  }

  /** Resolves when no item is unfinished. */
  async idle(): Promise<void> {
    if (this.#unfinished > 0) await new Promise<void>((resolve) => this.#idleWaiters.push(resolve))
  }

  /** Resolves every pending call of `idle`. */
  resolveIdle(): void {
    for (const resolve of this.#idleWaiters.splice(0)) resolve()
  }

  #dropOldest(): void {
    const [oldest = ''] = this.#ended
    this.#ended.delete(oldest)
    this.#items.delete(oldest)
  }

  get #unfinished(): number {
    return this.#items.size - this.#ended.size
  }
}
