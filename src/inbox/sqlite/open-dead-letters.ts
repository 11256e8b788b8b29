import { WebhookError } from '../../errors.ts'
import type { MediaEvent } from '../../events/catalogue.ts'
import type { DeadLetter, DeadLetters, InboxHost, UnreadableDelivery } from '../inbox.ts'
import type { SqliteDeadLetters } from './dead-letters.ts'
import { inTransaction } from './driver.ts'
import { hashKey } from './events.ts'
import type { SqliteFile } from './file.ts'

/** The part of the inbox that its dead letters need. */
export interface ReplayingInbox {
  /** @throws WebhookError when the inbox accepts nothing any more */
  checkOpen(): void
  isFull(): boolean
  /** Called when events have been added to the file. */
  onReplayed(): void
}

/** The dead letters of an open inbox. A replayed event is handled at once. */
export class OpenDeadLetters implements DeadLetters {
  readonly #file: SqliteFile
  readonly #host: InboxHost
  readonly #inbox: ReplayingInbox
  #isClosed = false

  constructor(file: SqliteFile, host: InboxHost, inbox: ReplayingInbox) {
    this.#file = file
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

  discard(key: string): boolean {
    return this.#deadLetters.discard(key)
  }

  async replay(key: string): Promise<boolean> {
    this.#inbox.checkOpen()
    if (this.#inbox.isFull()) throw new WebhookError('overloaded', 'too many events are waiting')
    const unreadable = this.#deadLetters.get(key)?.unreadable
    if (unreadable !== undefined) return this.#accept(key, unreadable, await this.#host.parse(unreadable))
    const replayed = this.#deadLetters.replay(key)
    if (replayed) this.#inbox.onReplayed()
    return replayed
  }

  /** Replaces an unreadable delivery by the event that was parsed of it. */
  #accept(key: string, { receivedAt }: UnreadableDelivery, event: MediaEvent): boolean {
    this.#inbox.checkOpen()
    const { database, events, deadLetters } = this.#file
    const replayed = inTransaction(database, () => {
      if (!deadLetters.discard(key)) return false
      events.accept(hashKey(event.key), JSON.stringify(event), receivedAt)
      return true
    })
    if (replayed) this.#inbox.onReplayed()
    return replayed
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
      if (event === undefined) this.#deadLetters.unmark(key)
      else this.#accept(key, unreadable, event)
    } catch (error) {
      // It stays marked, and is found when another process next changes the file, or when the file is opened.
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
