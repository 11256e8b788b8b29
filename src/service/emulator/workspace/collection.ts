import { WebhookError } from '../../../errors.ts'
import type { Change, Changes } from '../shared/changes.ts'
import { recordLimit } from '../shared/undocumented.ts'

/** Records of one kind, in order of creation. Notifies of every change. */
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

  /** @throws WebhookError `invalid_option` if the collection is full */
  add(item: Item): void {
    if (this.#items.size >= recordLimit)
      throw new WebhookError(
        'invalid_option',
        `the limit of ${recordLimit} ${this.#kind} is reached: delete some first`,
      )
    this.#set(item)
  }

  /** @returns the updated record, or `undefined` if there is none */
  update(id: string, patch: Partial<Item>): Item | undefined {
    const item = this.#items.get(id)
    return item && this.#set({ ...item, ...patch })
  }

  /** @returns `true` if the record existed */
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
