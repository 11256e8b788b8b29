import { maxUnreadable, unreadableDeadLetter } from '../engine/stored.ts'
import type { DeadLetter, UnreadableDelivery } from '../reading.ts'
import { toUnreadable, toUnreadableData, type UnreadableData } from './job.ts'
import { withScores } from './own-keys.ts'
import type { EventQueue } from './queue.ts'

/** The unreadable deliveries that are kept: the newest 1,000, in keys of ours. */
export class KeptUnreadable {
  readonly #queue: EventQueue

  constructor(queue: EventQueue) {
    this.#queue = queue
  }

  /** Keeps a delivery, unless it is kept. */
  async keep(unreadable: UnreadableDelivery): Promise<void> {
    await this.#put(await toUnreadableData(unreadable), 0)
  }

  /** Keeps a delivery again that still cannot be parsed. */
  async keepAgain({ key, unreadable }: UnreadableData, reason: string): Promise<void> {
    // Another text than before, so that who replayed it does not remove it.
    await this.#put({ key, unreadable: { ...unreadable, reason }, keptAgainAt: this.#queue.clock.now() }, 1)
  }

  async #put(data: UnreadableData, replaces: 0 | 1): Promise<void> {
    const parameters = [data.key, JSON.stringify(data), this.#queue.clock.now(), maxUnreadable, replaces]
    await this.#queue.reach(() => this.#queue.own.run('keepUnreadable', ...parameters))
  }

  /**
   * Removes a delivery. Returns `false` if another caller was first.
   * @param data removes only this, and not what was kept again meanwhile
   */
  async remove(key: string, data?: UnreadableData): Promise<boolean> {
    const parameters = data === undefined ? [key] : [key, JSON.stringify(data)]
    return (await this.#queue.reach(() => this.#queue.own.run('removeUnreadable', ...parameters))) === 1
  }

  count(): Promise<number> {
    return this.#queue.reach(() => this.#queue.client.zcard(this.#queue.own.of('unreadable')))
  }

  /** Returns the key of each, and the time at which it was kept (ms), newest first. */
  async order(): Promise<readonly (readonly [key: string, at: number])[]> {
    const { client, own } = this.#queue
    const found = await this.#queue.reach(() => client.zrevrange(own.of('unreadable'), 0, -1, 'WITHSCORES'))
    return withScores(found).map(([key, at]) => [key, Number(at)])
  }

  async get(key: string): Promise<UnreadableData | undefined> {
    const { client, own } = this.#queue
    const json = await this.#queue.reach(() => client.hget(own.of('unreadable-data'), key))
    return json === null ? undefined : JSON.parse(json)
  }
}

export const unreadableLetter = (data: UnreadableData): DeadLetter => unreadableDeadLetter(toUnreadable(data), data.key)
