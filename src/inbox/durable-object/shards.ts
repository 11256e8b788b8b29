import { askObject, type ObjectNamespace, shardOf } from '../../internal/storage/durable-objects.ts'
import { unpack } from './wire.ts'

export interface ShardsOptions {
  readonly namespace: ObjectNamespace
  readonly shards: number
  readonly timeoutMs: number
}

/** What an object has, and its number. */
export interface Sharded<Item> {
  readonly shard: number
  readonly item: Item
}

/** The objects of an inbox, by number. */
export class Shards {
  readonly #options: ShardsOptions

  constructor(options: ShardsOptions) {
    this.#options = options
  }

  /** Number of the object for a media item, or for an unreadable delivery with this body. */
  of(text: string): number {
    return shardOf(text, this.#options.shards)
  }

  get all(): number[] {
    return Array.from({ length: this.#options.shards }, (_, shard) => shard)
  }

  /** Asks one object. Repeats the request after a lost answer if `canRepeat`. */
  async ask<Result>(shard: number, step: string, input: unknown, canRepeat = true): Promise<Result> {
    const { namespace, timeoutMs } = this.#options
    const question = { name: `media-webhooks-${shard}`, step, input, canRepeat }
    return (await askObject(namespace, question, timeoutMs)) as Result
  }

  askAll<Result>(step: string, input?: unknown): Promise<Result[]> {
    return Promise.all(this.all.map((shard) => this.ask<Result>(shard, step, input)))
  }

  /** Asks all objects for what they have, and sorts it. */
  async gather<Item extends object>(
    ask: (shard: number) => Promise<readonly Item[]>,
    orderOf: (item: Item) => number,
  ): Promise<Sharded<Item>[]> {
    const lists = await Promise.all(this.all.map(ask))
    const items = lists.flatMap((list, shard) => list.map((item) => ({ shard, item: unpack(item) })))
    return items.sort((a, b) => orderOf(a.item) - orderOf(b.item))
  }

  /** Asks every object, because a key doesn't tell which one has it. */
  async find<Item extends object>(step: string, key: string): Promise<Sharded<Item> | undefined> {
    const answers = await this.askAll<Item | undefined>(step, key)
    const shard = answers.findIndex((answer) => answer !== undefined)
    const found = answers[shard]
    return found === undefined ? undefined : { shard, item: unpack(found) }
  }

  /** Lets the object that has a key carry out a step. False if none has. */
  async change(finds: 'event' | 'get', key: string, step: string): Promise<boolean> {
    const found = await this.find(finds, key)
    return found !== undefined && this.ask(found.shard, step, key, false)
  }
}
