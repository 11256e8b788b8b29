import { WebhookError } from '../../errors.ts'
import type { Change, Changes } from '../shared/changes.ts'
import { recordLimit } from '../shared/undocumented.ts'

/** All records of one kind, in the order in which they were created. It tells of every change. */
export class Collection<Item extends { readonly id: string }> {
  readonly #kind: Change['kind']
  readonly #changes: Changes
  readonly #items = new Map<string, Item>()

  constructor(kind: Change['kind'], changes: Changes) {
    this.#kind = kind
    this.#changes = changes
  }

  get(id: string): Item | undefined {
    return this.#items.get(id)
  }

  all(): Item[] {
    return [...this.#items.values()]
  }

  /** @throws WebhookError `invalid_option` when there is no room for one more */
  add(item: Item): void {
    if (this.#items.size >= recordLimit)
      throw new WebhookError(
        'invalid_option',
        `there is room for ${recordLimit} ${this.#kind}: delete some of them first`,
      )
    this.#set(item)
  }

  /** @returns the record as it is now, or `undefined` when there is none */
  update(id: string, patch: Partial<Item>): Item | undefined {
    const item = this.#items.get(id)
    return item && this.#set({ ...item, ...patch })
  }

  /** @returns whether there was one */
  delete(id: string): boolean {
    const deleted = this.#items.delete(id)
    if (deleted) this.#changes.notify({ kind: this.#kind, id })
    return deleted
  }

  #set(item: Item): Item {
    this.#items.set(item.id, item)
    this.#changes.notify({ kind: this.#kind, id: item.id })
    return item
  }
}
