import { maxUnreadable, unreadableDeadLetter } from '../engine/stored.ts'
import type { DeadLetter, UnreadableDelivery } from '../reading.ts'
import { toUnreadable, toUnreadableData, type UnreadableData } from './job.ts'
import { withScores } from './own-keys.ts'
import type { EventQueue } from './queue.ts'

/** Unreadable deliveries, the newest 1,000, in keys of our own. */
export class KeptUnreadable {
  readonly #queue: EventQueue

  constructor(queue: EventQueue) {
    this.#queue = queue
  }

  /** Keeps a delivery, unless it already is. */
  async keep(unreadable: UnreadableDelivery): Promise<void> {
    await this.#put(await toUnreadableData(unreadable), 0)
  }

  async keepAgain({ key, unreadable }: UnreadableData, reason: string): Promise<void> {
    // Differs from before, so whoever replayed the delivery doesn't remove it.
    await this.#put({ key, unreadable: { ...unreadable, reason }, keptAgainAt: this.#queue.clock.now() }, 1)
  }

  async #put(data: UnreadableData, replaces: 0 | 1): Promise<void> {
    const parameters = [data.key, JSON.stringify(data), this.#queue.clock.now(), maxUnreadable, replaces]
    await this.#queue.reach(() => this.#queue.own.run('keepUnreadable', ...parameters))
  }

  /** Removes a delivery, or only this version of it. Returns `false` if another caller was first. */
  async remove(key: string, data?: UnreadableData): Promise<boolean> {
    const parameters = data === undefined ? [key] : [key, JSON.stringify(data)]
    return (await this.#queue.reach(() => this.#queue.own.run('removeUnreadable', ...parameters))) === 1
  }

  count(): Promise<number> {
    return this.#queue.reach(() => this.#queue.client.zcard(this.#queue.own.of('unreadable')))
  }

  /** Returns each key with the time it was kept (ms), newest first. */
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
