import { WebhookError } from '../../errors.ts'
import type { MediaEvent } from '../../events/catalogue.ts'
import type { InboxHost } from '../inbox.ts'
import { replayAll } from '../operations/replay-all.ts'
import type { DeadLetter, DeadLetters, ReplayAllOptions, ReplayReport, UnreadableDelivery } from '../reading.ts'
import type { SqliteDeadLetters } from './dead-letters.ts'
import type { Commits, SqliteTables } from './storage.ts'

export interface ReplayingInbox {
  /** @throws WebhookError when the inbox no longer accepts events */
  checkOpen(): void
  isFull(): boolean
  /** Called when an event has been added to the file, with its row. */
  onReplayed(row: number): void
}

/** The dead letters of an open inbox. A replayed event is handled immediately. */
export class OpenDeadLetters implements DeadLetters {
  readonly #file: SqliteTables
  readonly #commits: Commits
  readonly #host: InboxHost
  readonly #inbox: ReplayingInbox
  #isClosed = false

  constructor(file: SqliteTables, commits: Commits, host: InboxHost, inbox: ReplayingInbox) {
    this.#file = file
    this.#commits = commits
    this.#host = host
    this.#inbox = inbox
  }

  get #deadLetters(): SqliteDeadLetters {
    if (this.#isClosed) throw new WebhookError('closing', 'the inbox is closed')
    return this.#file.deadLetters
  }

  get size(): number {
    return this.#deadLetters.size
  }

  list(page?: { readonly limit?: number; readonly offset?: number }): readonly DeadLetter[] {
    return this.#deadLetters.list(page)
  }

  get(key: string): DeadLetter | undefined {
    return this.#deadLetters.get(key)
  }

  discard(key: string): Promise<boolean> {
    return this.#commits.add(() => this.#file.deadLetters.discard(key))
  }

  async replay(key: string): Promise<boolean> {
    this.#inbox.checkOpen()
    if (this.#inbox.isFull()) throw new WebhookError('overloaded', 'too many events are waiting')
    const unreadable = this.#deadLetters.get(key)?.unreadable
    if (unreadable !== undefined) return this.#accept(key, unreadable, await this.#host.parse(unreadable))
    const row = await this.#commits.add(() => this.#file.deadLetters.putBack(key))
    if (row !== undefined) this.#inbox.onReplayed(row)
    return row !== undefined
  }

  replayAll(options?: ReplayAllOptions): Promise<ReplayReport> {
    return replayAll(this, options)
  }

  /** Replaces an unreadable delivery by its parsed event. */
  async #accept(key: string, { receivedAt }: UnreadableDelivery, event: MediaEvent): Promise<boolean> {
    this.#inbox.checkOpen()
    const { events, deadLetters } = this.#file
    const accepted = { event, receivedAt }
    const written = events.write(accepted, this.#host.expectations?.(accepted))
    const replayed = await this.#commits.add(() => {
      if (!deadLetters.discard(key)) return undefined
      const row = events.accept(written)
      if (row !== undefined) events.waitFromNow(row)
      return { row }
    })
    if (replayed?.row !== undefined) this.#inbox.onReplayed(replayed.row)
    return replayed !== undefined
  }

  /** Replays the unreadable deliveries that another process has marked. */
  replayMarked(): void {
    for (const { key, unreadable } of this.#deadLetters.marked()) {
      if (unreadable !== undefined) void this.#replayMarked(key, unreadable)
    }
  }

  async #replayMarked(key: string, unreadable: UnreadableDelivery): Promise<void> {
    const event = await this.#parse(key, unreadable)
    try {
      if (event === undefined) await this.#commits.add(() => this.#file.deadLetters.unmark(key))
      else await this.#accept(key, unreadable, event)
    } catch (error) {
      // It stays marked. It is found after the next change of another process, or when the file is opened.
      this.#host.logger.warn({ key, err: error }, 'an unreadable delivery could not be replayed yet')
    }
  }

  async #parse(key: string, unreadable: UnreadableDelivery): Promise<MediaEvent | undefined> {
    try {
      return await this.#host.parse(unreadable)
    } catch (error) {
      this.#host.logger.error({ key, err: error }, 'an unreadable delivery still cannot be parsed')
      return undefined
    }
  }

  close(): void {
    this.#isClosed = true
  }
}
