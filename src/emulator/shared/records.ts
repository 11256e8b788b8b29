import { WebhookError } from '../../errors.ts'

/** What is kept of things that come to an end, and how much of it. */
export interface RecordsOptions<Item> {
  /** What they are, for messages. */
  readonly name: string
  readonly isOver: (item: Item) => boolean
  /** How many may be unfinished at once. */
  readonly maxUnfinished: number
  /** How many are kept when they are over: the last ones. */
  readonly maxOver: number
  /** Told of each change. */
  readonly changed: (id: string) => void
}

/** Keeps every record of something that is under way, and the last ones of what is over. */
export class Records<Item extends { readonly id: string }> {
  readonly #options: RecordsOptions<Item>
  /** In the order in which they began. */
  readonly #items = new Map<string, Item>()
  /** The ids of those that are over, in the order in which they ended. */
  readonly #over = new Set<string>()
  #whenIdle: (() => void)[] = []

  constructor(options: RecordsOptions<Item>) {
    this.#options = options
  }

  /** @throws WebhookError `overloaded` when too many are unfinished */
  checkRoom(): void {
    const { name, maxUnfinished } = this.#options
    if (this.#unfinished < maxUnfinished) return
    throw new WebhookError('overloaded', `${maxUnfinished} ${name} are under way, and there is no room for more`)
  }

  /** Adds a record, or puts another one in its place. */
  put(item: Item): void {
    const { isOver, maxOver, changed } = this.#options
    this.#items.set(item.id, item)
    if (isOver(item)) this.#over.add(item.id)
    if (this.#over.size > maxOver) this.#dropOldest()
    changed(item.id)
    if (this.#unfinished === 0) this.letGo()
  }

  get(id: string): Item | undefined {
    return this.#items.get(id)
  }

  /** The newest one first. */
  list(): readonly Item[] {
    return [...this.#items.values()].reverse()
  }

  /** Resolves when nothing is unfinished. */
  async idle(): Promise<void> {
    if (this.#unfinished > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve))
  }

  /** Lets everyone go who waits for it to be idle. */
  letGo(): void {
    for (const resolve of this.#whenIdle.splice(0)) resolve()
  }

  #dropOldest(): void {
    const [oldest = ''] = this.#over
    this.#over.delete(oldest)
    this.#items.delete(oldest)
  }

  get #unfinished(): number {
    return this.#items.size - this.#over.size
  }
}
