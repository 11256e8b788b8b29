import { WebhookError } from '../../errors.ts'
import type { Acceptance, AcceptedEvent, InboxHost } from '../inbox.ts'
import { pageOf } from '../operations/page.ts'
import { replayAll } from '../operations/replay-all.ts'
import type { DeadLetter, DeadLetters, ReplayAllOptions, ReplayReport } from '../reading.ts'
import type { ListedKey } from '../sql/dead-letter-row.ts'
import type { KeysPage } from '../sql/dead-letters.ts'
import type { Shards } from './shards.ts'
import { type KeysQuery, type PageRange, unpackDeadLetter, type WireDeadLetter } from './wire.ts'

interface Found {
  readonly shard: number
  readonly deadLetter: DeadLetter
}

type FoundKey = ListedKey & Pick<Found, 'shard'>

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
    return (await this.#list(page)).map(({ deadLetter }) => deadLetter)
  }

  async #list(page?: PageRange): Promise<Found[]> {
    const { limit, offset } = pageOf(page)
    const pages = await this.#shards.askAll<WireDeadLetter[]>('list', { limit: limit + offset, offset: 0 })
    const newestFirst = pages.flatMap((page, shard) =>
      page.map((each) => ({ shard, deadLetter: unpackDeadLetter(each) })),
    )
    newestFirst.sort((a, b) => b.deadLetter.diedAt.getTime() - a.deadLetter.diedAt.getTime())
    return newestFirst.slice(offset, offset + limit)
  }

  async get(key: string): Promise<DeadLetter | undefined> {
    return (await this.#find(key))?.deadLetter
  }

  async replay(key: string): Promise<boolean> {
    const found = await this.#find(key)
    return found !== undefined && this.#replay(found.shard, found.deadLetter)
  }

  async #replay(shard: number, { key, receivedAt, unreadable }: DeadLetter): Promise<boolean> {
    if (unreadable === undefined) return this.#shards.ask(shard, 'replay', key, false)
    const event = await this.#host.parse(unreadable)
    // Its media item may belong to another object. If the Worker ends in between, the next replay finds a duplicate.
    const acceptance = await this.#accept({ event, receivedAt })
    if (acceptance === 'overloaded') throw new WebhookError('overloaded', 'too many events are waiting')
    return this.#shards.ask(shard, 'discard', key, false)
  }

  /** One request per dead letter: a Worker's requests are limited. */
  async replayAll(options?: ReplayAllOptions): Promise<ReplayReport> {
    const listed = new Map<string, FoundKey>()
    const keys = async () => {
      const all = await Promise.all(this.#shards.all.map((shard) => this.#keysOf(shard, options)))
      const oldestFirst = all.flat().sort((a, b) => a.diedAt.getTime() - b.diedAt.getTime())
      for (const each of oldestFirst) listed.set(each.key, each)
      return [...listed.keys()]
    }
    const replay = async (key: string) => {
      const found = listed.get(key)
      if (found === undefined) return false
      if (found.type !== undefined) return this.#shards.ask<boolean>(found.shard, 'replay', key, false)
      const unreadable = await this.#shards.ask<WireDeadLetter | undefined>(found.shard, 'get', key)
      return unreadable !== undefined && this.#replay(found.shard, unpackDeadLetter(unreadable))
    }
    return replayAll({ replay }, options, keys)
  }

  async #keysOf(shard: number, { type, since }: ReplayAllOptions = {}): Promise<FoundKey[]> {
    const all: FoundKey[] = []
    for (let after: KeysPage['next'] = ''; after !== undefined; ) {
      const query: KeysQuery = { type, since, after }
      const page: KeysPage = await this.#shards.ask(shard, 'keys', query)
      for (const each of page.found) all.push({ ...each, diedAt: new Date(each.diedAt), shard })
      after = page.next
    }
    return all
  }

  async discard(key: string): Promise<boolean> {
    const found = await this.#find(key)
    return found !== undefined && this.#shards.ask(found.shard, 'discard', key, false)
  }

  async #find(key: string): Promise<Found | undefined> {
    const answer = await this.#shards.find<WireDeadLetter>('get', key)
    return answer && { shard: answer.shard, deadLetter: unpackDeadLetter(answer.found) }
  }
}
