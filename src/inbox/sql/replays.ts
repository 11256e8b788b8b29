import { WebhookError } from '../../errors.ts'
import { nextTurn } from '../../internal/timers.ts'
import type { InboxHost } from '../inbox.ts'
import { parseAgain } from '../operations/dead-letters.ts'
import { replayInBatches } from '../operations/replay-all.ts'
import type { DeadLetter, DeadLetters, ReplayAllOptions, ReplayReport, UnreadableDelivery } from '../reading.ts'
import type { Database } from './database.ts'
import { type DeadHeadRow, deadHeadColumns, readDeadHead, undamaged } from './dead-letter-row.ts'
import { toNewEvent } from './intake.ts'

/** What a process with a receiver does at a replay. Without one, unreadable deliveries are marked for those that have one. */
export interface Replaying {
  readonly host: InboxHost
  /** @throws WebhookError if no event may be added */
  readonly check?: () => void
  /** Called after events were replayed. */
  readonly replayed?: () => void
}

export interface ReplaysOptions {
  readonly database: Database
  readonly replaying: Replaying | undefined
  /** Reads a dead letter with its body. */
  readonly get: (key: string) => Promise<DeadLetter | undefined>
  /** Dead letters replayed per commit. */
  readonly maxCommit: number
}

/** Replays dead letters: accepts them again, at the end of their lanes. */
export class SqlReplays implements Pick<DeadLetters, 'replay'> {
  readonly #options: ReplaysOptions

  constructor(options: ReplaysOptions) {
    this.#options = options
  }

  async replay(key: string): Promise<boolean> {
    return (await this.replayMany([key])).length > 0
  }

  async replayMany(keys: readonly string[]): Promise<readonly string[]> {
    const replayed = new Set<string>()
    await this.#replay(keys, replayed)
    return [...replayed]
  }

  /** @param keys lists the keys, oldest first */
  replayAll(options: ReplayAllOptions | undefined, keys: () => Promise<readonly string[]>): Promise<ReplayReport> {
    const replay = (batch: readonly string[], replayed: Set<string>) => this.#replay(batch, replayed)
    return replayInBatches(replay, this.#options.maxCommit, keys, options)
  }

  /** Adds the keys that it replays to `replayed`, also if it fails halfway. */
  async #replay(keys: readonly string[], replayed: Set<string>): Promise<void> {
    const { maxCommit, replaying } = this.#options
    for (let start = 0; start < keys.length; start += maxCommit) {
      if (start > 0) await nextTurn()
      const rows = await this.#find(keys.slice(start, start + maxCommit))
      replaying?.check?.()
      for (const key of await this.#replayEvents(rows.filter(({ media }) => media !== null))) replayed.add(key)
      const unreadable = undamaged(rows, (row) => (row.media === null ? readDeadHead(row).key : undefined))
      const others = unreadable.filter((key) => key !== undefined)
      if (replaying === undefined) for (const key of await this.#mark(others, true)) replayed.add(key)
      else for (const key of others) if (await this.#parse(key, replaying)) replayed.add(key)
    }
  }

  /** Finds dead letters, in the order of the keys. */
  async #find(keys: readonly string[]): Promise<DeadHeadRow[]> {
    const { database } = this.#options
    const { dialect } = database
    const sql = `SELECT ${deadHeadColumns(dialect)}
      FROM (${dialect.hashesIn('$1')}) asked JOIN $event event ON event.hash = asked.hash
      WHERE died_at IS NOT NULL ORDER BY asked.place`
    return database.read<DeadHeadRow>(sql, [JSON.stringify(keys.map((key) => database.hashKey(key)))])
  }

  async #replayEvents(rows: readonly DeadHeadRow[]): Promise<readonly string[]> {
    if (rows.length === 0) return []
    const { database } = this.#options
    const dead = rows.map(({ id, media }) => ({ id: Number(id), media: `${media}` }))
    const found = new Set(await database.run(database.steps.replay(dead)))
    if (found.size > 0) this.#replayed()
    return undamaged(
      rows.filter(({ id }) => found.has(Number(id))),
      readDeadHead,
    ).map(({ key }) => key)
  }

  #replayed(): void {
    this.#options.database.notify?.('due')
    this.#options.replaying?.replayed?.()
  }

  /** Parses an unreadable delivery again, and stores its events in its place. */
  async #parse(key: string, { host, check }: Replaying): Promise<boolean> {
    const { database, get } = this.#options
    // One at a time: its body can be large.
    const unreadable: UnreadableDelivery | undefined = (await get(key))?.unreadable
    if (unreadable === undefined) return false
    const parsed = await parseAgain(host, unreadable)
    check?.()
    const events = parsed.map(({ owed, ...accepted }) => toNewEvent(database, host, accepted, owed))
    const replaced = await database.run(database.steps.replace(database.hashKey(key), events))
    if (replaced === 'gone') return false
    this.#replayed()
    return true
  }

  /** Marks or unmarks unreadable deliveries for a process that can parse them. Returns the keys found. */
  async #mark(keys: readonly string[], isMarked: boolean): Promise<readonly string[]> {
    if (keys.length === 0) return []
    const { database } = this.#options
    const sql = 'UPDATE $event SET replay = $1 WHERE hash = $2 AND body IS NOT NULL'
    const flag = isMarked ? '1' : '0'
    const changed = await database.change(keys.map((key) => ({ sql, values: [flag, database.hashKey(key)] })))
    if (isMarked) database.notify?.('replay')
    return keys.filter((_, index) => changed[index] === 1)
  }

  /** Replays unreadable deliveries marked by another program. Those that still can't be parsed stay, unmarked. */
  async replayMarked(): Promise<void> {
    const { database, replaying } = this.#options
    const sql = `SELECT ${deadHeadColumns(database.dialect)} FROM $event event WHERE replay ORDER BY id`
    for (const { key } of undamaged(await database.read<DeadHeadRow>(sql), readDeadHead)) {
      try {
        await this.replay(key)
      } catch (error) {
        const code = error instanceof WebhookError ? error.code : undefined
        if (code === 'closing' || code === 'overloaded') return
        if (code === 'unavailable') throw error
        replaying?.host.logger.error({ key, err: error }, 'an unreadable delivery still cannot be parsed')
        await this.#mark([key], false)
      }
    }
  }
}
