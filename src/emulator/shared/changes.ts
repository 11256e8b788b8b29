/** That something in the emulator is no longer as it was. Who wants to know what it is now, asks. */
export interface Change {
  readonly kind: 'webhooks' | 'api-keys' | 'media' | 'sendings'
  readonly id: string
}

/** Tells whoever listens, such as the page, what changes in the emulator. */
export class Changes {
  readonly #listeners = new Set<(change: Change) => void>()

  /** @returns a function that ends it */
  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  notify(change: Change): void {
    for (const listener of this.#listeners) listener(change)
  }
}
