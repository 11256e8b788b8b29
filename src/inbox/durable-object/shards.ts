import { askObject, type ObjectNamespace, shardOf } from '../../storage/durable-objects.ts'

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

  /** The number of the object that has the events of a media item, or an unreadable delivery with this body. */
  of(text: string): number {
    return shardOf(text, this.#options.shards)
  }

  /** The numbers of all objects. */
  get all(): number[] {
    return Array.from({ length: this.#options.shards }, (_, shard) => shard)
  }

  /** Asks one object. What can be carried out twice is asked again if the answer is lost. */
  async ask<Result>(shard: number, step: string, input: unknown, canRepeat = true): Promise<Result> {
    const { namespace, timeoutMs } = this.#options
    const question = { name: `media-webhooks-${shard}`, step, input, canRepeat }
    return (await askObject(namespace, question, timeoutMs)) as Result
  }

  askAll<Result>(step: string, input?: unknown): Promise<Result[]> {
    return Promise.all(this.all.map((shard) => this.ask<Result>(shard, step, input)))
  }

  /** Asks all objects for what one of them has. A key does not say which. */
  async find<Result>(step: string, key: string): Promise<{ shard: number; found: Result } | undefined> {
    const answers = await this.askAll<Result | undefined>(step, key)
    const shard = answers.findIndex((answer) => answer !== undefined)
    const found = answers[shard]
    return found === undefined ? undefined : { shard, found }
  }
}
