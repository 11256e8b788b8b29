import { WebhookError } from '../../errors.ts'
import { toBase64 } from '../../internal/base64.ts'
import { Closing } from '../../internal/closing.ts'
import { askObject, shardOf } from '../../internal/durable-objects.ts'
import type { DurableObjectInboxOptions } from '../durable-object.ts'
import type { Acceptance, AcceptedEvent, CloseOptions, CloseReport, Inbox, InboxHost } from '../inbox.ts'
import type { DeadLetter, DeadLetters, InboxStats, UnreadableDelivery } from '../reading.ts'
import { packUnreadable, unpackDeadLetter, type WireDeadLetter } from './wire.ts'

/** The objects of an inbox. */
class Shards {
  readonly #options: Required<DurableObjectInboxOptions>

  constructor(options: Required<DurableObjectInboxOptions>) {
    this.#options = options
  }

  /** The number of the object that has the events of a media, or an unreadable delivery with this body. */
  of(text: string): number {
    return shardOf(text, this.#options.shards)
  }

  /** Asks one object. What can be carried out twice is asked again if the answer is lost. */
  async ask<Result>(shard: number, step: string, input: unknown, canRepeat = true): Promise<Result> {
    const { namespace, timeoutMs } = this.#options
    const question = { name: `media-webhooks-${shard}`, step, input, canRepeat }
    return (await askObject(namespace, question, timeoutMs)) as Result
  }

  askAll<Result>(step: string, input?: unknown): Promise<Result[]> {
    return Promise.all(Array.from({ length: this.#options.shards }, (_, shard) => this.ask<Result>(shard, step, input)))
  }
}

/** Hands events over to the objects, and asks them for what they have. */
export class WorkerInbox implements Inbox {
  readonly deadLetters: DeadLetters
  readonly #shards: Shards
  readonly #closing = new Closing(
    'the inbox is closing',
    (): Promise<CloseReport> => Promise.resolve({ unfinished: [] }),
  )

  constructor(host: InboxHost, options: Required<DurableObjectInboxOptions>) {
    this.#shards = new Shards(options)
    this.deadLetters = new ShardedDeadLetters(this.#shards, host, (accepted) => this.accept(accepted))
  }

  async accept(accepted: AcceptedEvent): Promise<Acceptance> {
    this.#closing.checkOpen()
    return this.#shards.ask<Acceptance>(this.#shards.of(accepted.event.mediaId), 'accept', accepted)
  }

  async keepUnreadable(unreadable: UnreadableDelivery): Promise<void> {
    this.#closing.checkOpen()
    await this.#shards.ask(this.#shards.of(toBase64(unreadable.body)), 'keepUnreadable', packUnreadable(unreadable))
  }

  async stats(): Promise<InboxStats> {
    const all = await this.#shards.askAll<InboxStats>('stats')
    const sum = (count: (stats: InboxStats) => number) => all.reduce((total, stats) => total + count(stats), 0)
    return {
      waiting: sum(({ waiting }) => waiting),
      running: sum(({ running }) => running),
      retrying: sum(({ retrying }) => retrying),
      deadLetters: sum(({ deadLetters }) => deadLetters),
    }
  }

  /** The objects go on with what they have. */
  close(options?: CloseOptions): Promise<CloseReport> {
    return this.#closing.start(options)
  }
}

/** The dead letters of all objects. A key does not say which object has it, so all of them are asked. */
class ShardedDeadLetters implements DeadLetters {
  readonly #shards: Shards
  readonly #host: InboxHost
  readonly #accept: (accepted: AcceptedEvent) => Promise<Acceptance>

  constructor(shards: Shards, host: InboxHost, accept: (accepted: AcceptedEvent) => Promise<Acceptance>) {
    this.#shards = shards
    this.#host = host
    this.#accept = accept
  }

  async list({ limit = 100, offset = 0 }: { limit?: number; offset?: number } = {}): Promise<readonly DeadLetter[]> {
    const pages = await this.#shards.askAll<WireDeadLetter[]>('list', { limit: limit + offset, offset: 0 })
    const newestFirst = pages.flat().map(unpackDeadLetter)
    newestFirst.sort((a, b) => b.diedAt.getTime() - a.diedAt.getTime())
    return newestFirst.slice(offset, offset + limit)
  }

  async get(key: string): Promise<DeadLetter | undefined> {
    return (await this.#find(key))?.deadLetter
  }

  async replay(key: string): Promise<boolean> {
    const found = await this.#find(key)
    if (found === undefined) return false
    const { shard, deadLetter } = found
    if (deadLetter.unreadable === undefined) return this.#shards.ask(shard, 'replay', key, false)
    const event = await this.#host.parse(deadLetter.unreadable)
    // Its media may belong to another object. If the Worker ends in between, the next replay finds a duplicate.
    const acceptance = await this.#accept({ event, receivedAt: deadLetter.receivedAt })
    if (acceptance === 'overloaded') throw new WebhookError('overloaded', 'too many events are waiting')
    return this.#shards.ask(shard, 'discard', key, false)
  }

  async discard(key: string): Promise<boolean> {
    const found = await this.#find(key)
    return found !== undefined && this.#shards.ask(found.shard, 'discard', key, false)
  }

  async #find(key: string): Promise<{ shard: number; deadLetter: DeadLetter } | undefined> {
    const answers = await this.#shards.askAll<WireDeadLetter | undefined>('get', key)
    const shard = answers.findIndex((answer) => answer !== undefined)
    const found = answers[shard]
    return found && { shard, deadLetter: unpackDeadLetter(found) }
  }
}
