import type { MediaEvent } from '../../events/media-service/catalogue.ts'
import type { Claims } from '../../idempotency/store.ts'

/** Marks a key as done. Resolves once the store has recorded it. */
export const completeIn = (claims: Claims, key: string): Promise<void> =>
  new Promise((resolve) => claims.complete(key, resolve))

/**
 * Remembers which handlers of an event have completed, by a key of the store for each. The first attempt at an event with
 * one handler needs none, since the event's own key says the same. At a later one, another version of the application may
 * have had more handlers.
 */
export class HandlerClaims {
  readonly #claims: Claims
  readonly #keys: ReadonlyMap<string, string>
  /** The handlers that are claimed here, and not completed yet. */
  readonly #open = new Set<string>()

  constructor(claims: Claims, { key }: MediaEvent, handlers: readonly string[], attempt: number) {
    this.#claims = claims
    // The length keeps the keys apart, since names and keys may hold any character.
    const named = handlers.map((handler) => [handler, `handler:${handler.length}:${handler}:${key}`] as const)
    this.#keys = new Map(handlers.length > 1 || attempt > 1 ? named : [])
  }

  /** Returns the handlers that have completed; `undefined` while another process holds one of them. */
  async claim(): Promise<readonly string[] | undefined> {
    const claims = [...this.#keys].map(async ([handler, key]) => {
      const claim = await this.#claims.claim(key)
      if (claim === 'claimed') this.#open.add(handler)
      return { handler, claim }
    })
    // If one fails, the others come first: a claim that came later would never be released.
    await Promise.allSettled(claims)
    const answers = await Promise.all(claims)
    if (answers.some(({ claim }) => claim === 'in-progress')) return undefined
    return answers.filter(({ claim }) => claim === 'done').map(({ handler }) => handler)
  }

  /** Records that a handler has completed. Resolves once that is safe. */
  async complete(handler: string): Promise<void> {
    if (!this.#open.delete(handler)) return
    await completeIn(this.#claims, this.#keys.get(handler) as string)
  }

  /** Gives back the claims of the handlers that have not completed. */
  async release(): Promise<void> {
    await Promise.all([...this.#open].map((handler) => this.#claims.release(this.#keys.get(handler) as string)))
  }
}
