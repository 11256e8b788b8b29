/** Names a thing that was created, changed or deleted. Carries no data: listeners read the current state. */
export interface Change {
  readonly kind: 'webhooks' | 'api-keys' | 'media' | 'sendings'
  readonly id: string
}

/** Notifies listeners, such as the page, of changes. */
export class Changes {
  readonly #listeners = new Set<(change: Change) => void>()

  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  notify(change: Change): void {
    for (const listener of this.#listeners) listener(change)
  }
}
