import type { MediaEvent } from '../../events/media-service/catalogue.ts'
import type { Claims } from '../../idempotency/store.ts'

/** Marks a key as done. Resolves once the store has recorded it. */
export const completeIn = (claims: Claims, key: string): Promise<void> =>
  new Promise((resolve) => claims.complete(key, resolve))

/**
 * Remembers which handlers of an event have completed, with one store key per handler. The first attempt at an event
 * with a single handler needs none: the event's own key says the same. A later attempt does, because a previous version
 * of the application may have had more handlers.
 */
export class HandlerClaims {
  readonly #claims: Claims
  readonly #keys: ReadonlyMap<string, string>
  /** Handlers claimed here and not completed yet. */
  readonly #open = new Set<string>()

  constructor(claims: Claims, { key }: MediaEvent, handlers: readonly string[], attempt: number) {
    this.#claims = claims
    // Names and keys may hold any character; the length keeps them apart.
    const named = handlers.map((handler) => [handler, `handler:${handler.length}:${handler}:${key}`] as const)
    this.#keys = new Map(handlers.length > 1 || attempt > 1 ? named : [])
  }

  /** Returns the completed handlers, or `undefined` while another process holds one. */
  async claim(): Promise<readonly string[] | undefined> {
    const claims = [...this.#keys].map(async ([handler, key]) => {
      const claim = await this.#claims.claim(key)
      if (claim === 'claimed') this.#open.add(handler)
      return { handler, claim }
    })
    // Wait for all, even if one fails: a claim answered later would never be released.
    await Promise.allSettled(claims)
    const answers = await Promise.all(claims)
    if (answers.some(({ claim }) => claim === 'in-progress')) return undefined
    return answers.filter(({ claim }) => claim === 'done').map(({ handler }) => handler)
  }

  async complete(handler: string): Promise<void> {
    if (!this.#open.delete(handler)) return
    await completeIn(this.#claims, this.#keys.get(handler) as string)
  }

  async release(): Promise<void> {
    await Promise.all([...this.#open].map((handler) => this.#claims.release(this.#keys.get(handler) as string)))
  }
}
