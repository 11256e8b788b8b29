import { WebhookError } from '../../../errors.ts'

export interface RecentItemsOptions<Item> {
  /** A plural for error messages, such as `events`. */
  readonly name: string
  readonly hasEnded: (item: Item) => boolean
  readonly maxUnfinished: number
  /** Ended items to keep. The oldest are dropped first. */
  readonly maxEnded: number
  readonly onChange: (id: string) => void
}

/** Keeps all unfinished items, and the latest ended ones. */
export class RecentItems<Item extends { readonly id: string }> {
  readonly #options: RecentItemsOptions<Item>
  /** In order of creation. */
  readonly #items = new Map<string, Item>()
  /** Ids of ended items, in the order they ended. */
  readonly #ended = new Set<string>()
  #idleWaiters: (() => void)[] = []

  constructor(options: RecentItemsOptions<Item>) {
    this.#options = options
  }

  /** @throws WebhookError `overloaded` if too many items are unfinished */
  checkRoom(): void {
    const { name, maxUnfinished } = this.#options
    if (this.#unfinished < maxUnfinished) return
    throw new WebhookError('overloaded', `too many unfinished ${name}: the limit is ${maxUnfinished}`)
  }

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

  /** Resolves once all items have ended. */
  async idle(): Promise<void> {
    if (this.#unfinished > 0) await new Promise<void>((resolve) => this.#idleWaiters.push(resolve))
  }

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
