import { WebhookError } from '../../errors.ts'
import type { Acceptance, AcceptedEvent, InboxHost } from '../inbox.ts'
import { checkPage } from '../operations/page.ts'
import { replayAll } from '../operations/replay-all.ts'
import type { DeadLetter, DeadLetters, ReplayAllOptions, ReplayReport } from '../reading.ts'
import type { ListedKey } from '../sql/dead-letter-row.ts'
import type { KeysPage } from '../sql/dead-letters.ts'
import type { Sharded, Shards } from './shards.ts'
import { type KeysQuery, type PageRange, unpack } from './wire.ts'

export class ShardedDeadLetters implements DeadLetters {
  readonly #shards: Shards
  readonly #host: InboxHost
  readonly #accept: (accepted: AcceptedEvent) => Promise<Acceptance>

  constructor(shards: Shards, host: InboxHost, accept: (accepted: AcceptedEvent) => Promise<Acceptance>) {
    this.#shards = shards
    this.#host = host
    this.#accept = accept
  }

  async list(page?: PageRange): Promise<readonly DeadLetter[]> {
    const { limit, offset } = checkPage(page)
    const newestFirst = await this.#shards.gather(
      (shard) => this.#shards.ask<DeadLetter[]>(shard, 'list', { limit: limit + offset, offset: 0 }),
      ({ diedAt }) => -diedAt.getTime(),
    )
    return newestFirst.slice(offset, offset + limit).map(({ item }) => item)
  }

  async get(key: string): Promise<DeadLetter | undefined> {
    return (await this.#shards.find<DeadLetter>('get', key))?.item
  }

  async replay(key: string): Promise<boolean> {
    const found = await this.#shards.find<DeadLetter>('get', key)
    return found !== undefined && this.#replay(found)
  }

  async #replay({ shard, item: { key, receivedAt, unreadable } }: Sharded<DeadLetter>): Promise<boolean> {
    if (unreadable === undefined) return this.#shards.ask(shard, 'replay', key, false)
    for (const event of await this.#host.parse(unreadable)) {
      // Its media item may belong to another object. If the Worker ends in between, the next replay finds a duplicate.
      const acceptance = await this.#accept({ event, receivedAt, trace: unreadable.trace })
      if (acceptance === 'overloaded') throw new WebhookError('overloaded', 'too many events are waiting')
    }
    return this.#shards.ask(shard, 'discard', key, false)
  }

  /** One request per dead letter: a Worker's requests are limited. */
  async replayAll(options?: ReplayAllOptions): Promise<ReplayReport> {
    const listed = new Map<string, Sharded<ListedKey>>()
    const keys = async () => {
      const ask = (shard: number) => this.#readKeys(shard, options)
      const oldestFirst = await this.#shards.gather(ask, ({ diedAt }) => diedAt.getTime())
      for (const each of oldestFirst) listed.set(each.item.key, each)
      return [...listed.keys()]
    }
    const replay = async (key: string) => {
      const found = listed.get(key)
      if (found === undefined) return false
      const { shard, item } = found
      if (item.type !== undefined) return this.#shards.ask<boolean>(shard, 'replay', key, false)
      const unreadable = await this.#shards.ask<DeadLetter | undefined>(shard, 'get', key)
      return unreadable !== undefined && this.#replay({ shard, item: unpack(unreadable) })
    }
    return replayAll({ replay }, options, keys)
  }

  async #readKeys(shard: number, { type, since }: ReplayAllOptions = {}): Promise<ListedKey[]> {
    const all: ListedKey[] = []
    for (let after: KeysPage['next'] = ''; after !== undefined; ) {
      const query: KeysQuery = { type, since, after }
      const page: KeysPage = await this.#shards.ask(shard, 'keys', query)
      all.push(...page.found)
      after = page.next
    }
    return all
  }

  discard(key: string): Promise<boolean> {
    return this.#shards.change('get', key, 'discard')
  }
}
