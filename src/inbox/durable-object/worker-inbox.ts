import { toBase64 } from '../../internal/base64.ts'
import { measure } from '../../internal/maybe-promise.ts'
import { Closing } from '../closing.ts'
import type { Acceptance, AcceptedEvent, CloseOptions, CloseReport, Inbox, InboxHost } from '../inbox.ts'
import { reviveOperation } from '../operations/operations.ts'
import { checkLimit } from '../operations/page.ts'
import type {
  DeadLetters,
  EventRecord,
  InboxStats,
  OpenExpectation,
  Operation,
  Operations,
  Pause,
  Pauses,
  UnreadableDelivery,
} from '../reading.ts'
import { ShardedDeadLetters } from './sharded-dead-letters.ts'
import { ShardedEvents } from './sharded-events.ts'
import { Shards, type ShardsOptions } from './shards.ts'
import { packUnreadable } from './wire.ts'

/** The Worker's side of the inbox: hands events to the objects, and asks them for what they have. */
export class WorkerInbox implements Inbox {
  readonly deadLetters: DeadLetters
  readonly events: ShardedEvents
  readonly pauses: Pauses
  readonly #shards: Shards
  readonly #measured: InboxHost['measured']
  readonly #closing = new Closing(
    'the inbox is closing',
    (): Promise<CloseReport> => Promise.resolve({ unfinished: [] }),
  )

  constructor(host: InboxHost, options: ShardsOptions) {
    this.#shards = new Shards(options)
    this.#measured = host.measured
    this.deadLetters = new ShardedDeadLetters(this.#shards, host, (accepted) => this.accept(accepted))
    this.events = new ShardedEvents(this.#shards)
    this.pauses = makePauses(this.#shards, host)
  }

  async accept(accepted: AcceptedEvent): Promise<Acceptance> {
    this.#closing.checkOpen()
    const shard = this.#shards.of(accepted.event.mediaId)
    return measure(this.#measured, 'accept', () => this.#shards.ask<Acceptance>(shard, 'accept', accepted))
  }

  async keepUnreadable(unreadable: UnreadableDelivery): Promise<void> {
    this.#closing.checkOpen()
    await this.#shards.ask(this.#shards.of(toBase64(unreadable.body)), 'keepUnreadable', packUnreadable(unreadable))
  }

  async stats(): Promise<InboxStats> {
    const all = await this.#shards.askAll<InboxStats>('stats')
    const waitingSince = all.flatMap(({ oldestWaitingAt }) =>
      oldestWaitingAt ? [Number(new Date(oldestWaitingAt))] : [],
    )
    const sum = (count: (stats: InboxStats) => number) => all.reduce((total, stats) => total + count(stats), 0)
    const expected = sum((stats) => stats.expected ?? 0)
    return {
      waiting: sum(({ waiting }) => waiting),
      running: sum(({ running }) => running),
      retrying: sum(({ retrying }) => retrying),
      deadLetters: sum(({ deadLetters }) => deadLetters),
      ...(expected > 0 && { expected }),
      ...(waitingSince.length > 0 && { oldestWaitingAt: new Date(Math.min(...waitingSince)) }),
    }
  }

  async expected(given?: number): Promise<readonly OpenExpectation[]> {
    const limit = checkLimit('expected', given)
    const ask = (shard: number) => this.#shards.ask<OpenExpectation[]>(shard, 'expected', limit)
    const open = await this.#shards.gather(ask, ({ dueAt }) => dueAt.getTime())
    return open.slice(0, limit).map(({ item }) => item)
  }

  history(mediaId: string): Promise<readonly EventRecord[]> {
    return this.events.history(mediaId)
  }

  /** An operation may concern events of any object, so one object keeps them all. */
  readonly operations: Operations = {
    add: (operation) => this.#shards.ask(0, 'operated', operation, false),
    list: async (query = {}) => (await this.#shards.ask<Operation[]>(0, 'operations', query)).map(reviveOperation),
  }

  /** The objects keep handling their events. */
  close(options?: CloseOptions): Promise<CloseReport> {
    return this.#closing.start(options)
  }
}

/** The pauses of all objects. Each object stores them too, so it asks no other when it wakes. */
const makePauses = (shards: Shards, host: Pick<InboxHost, 'handlers'>): Pauses => ({
  handlers: () => host.handlers().map(({ name }) => name),
  async list() {
    const ask = (shard: number) => shards.ask<Pause[]>(shard, 'pauses', undefined)
    const oldestFirst = (await shards.gather(ask, ({ since }) => since.getTime())).map(({ item }) => item)
    // Objects are paused one by one.
    return oldestFirst.filter(
      ({ handler }, index) => index === oldestFirst.findIndex((each) => each.handler === handler),
    )
  },
  pause: async (options = {}) => (await shards.askAll<boolean>('pause', options)).includes(true),
  resume: async (options = {}) => (await shards.askAll<boolean>('resume', options)).includes(true),
})
