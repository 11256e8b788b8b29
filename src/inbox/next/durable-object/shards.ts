import { askObject, type ObjectNamespace, shardOf } from '../../../storage/durable-objects.ts'

export interface ShardsOptions {
  readonly namespace: ObjectNamespace
  readonly shards: number
  readonly timeoutMs: number
}

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

  /** Asks every object, because a key doesn't tell which one has it. */
  async find<Result>(step: string, key: string): Promise<{ shard: number; found: Result } | undefined> {
    const answers = await this.askAll<Result | undefined>(step, key)
    const shard = answers.findIndex((answer) => answer !== undefined)
    const found = answers[shard]
    return found === undefined ? undefined : { shard, found }
  }
}
