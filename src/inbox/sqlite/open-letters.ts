import { WebhookError } from '../../errors.ts'
import type { MediaEvent } from '../../events/catalogue.ts'
import type { Logger } from '../../internal/logger.ts'
import type { DeadLetter, DeadLetters, ReadRefused, RefusedDelivery } from '../inbox.ts'
import type { SqliteDeadLetters } from './dead-letters.ts'
import { inTransaction } from './driver.ts'
import { hashKey } from './events.ts'
import type { SqliteFile } from './file.ts'

export interface OpenDeadLettersParts {
  readonly file: SqliteFile
  readonly logger: () => Logger
  readonly readRefused: ReadRefused
  /** @throws WebhookError when the inbox takes nothing any more */
  checkOpen(): void
  isFull(): boolean
  /** Told that events have been added to the file. */
  onReplayed(): void
}

/** The dead letters of an inbox that is open. What is replayed is handled at once. */
export class OpenDeadLetters implements DeadLetters {
  readonly #parts: OpenDeadLettersParts
  #isClosed = false

  constructor(parts: OpenDeadLettersParts) {
    this.#parts = parts
  }

  get #letters(): SqliteDeadLetters {
    if (this.#isClosed) throw new WebhookError('closing', 'the inbox is closed')
    return this.#parts.file.letters
  }

  get size(): number {
    return this.#letters.size
  }

  list(page?: { readonly limit?: number; readonly offset?: number }): readonly DeadLetter[] {
    return this.#letters.list(page)
  }

  get(key: string): DeadLetter | undefined {
    return this.#letters.get(key)
  }

  discard(key: string): boolean {
    return this.#letters.discard(key)
  }

  async replay(key: string): Promise<boolean> {
    this.#parts.checkOpen()
    if (this.#parts.isFull()) throw new WebhookError('overloaded', 'the inbox is full')
    const refused = this.#letters.get(key)?.refused
    if (refused !== undefined) return this.#replayRefused(key, refused)
    const replayed = this.#letters.replay(key)
    if (replayed) this.#parts.onReplayed()
    return replayed
  }

  async #replayRefused(key: string, refused: RefusedDelivery): Promise<boolean> {
    return this.#accept(key, refused, await this.#parts.readRefused(refused))
  }

  /** Puts the event that was read of a refused delivery in its place. */
  #accept(key: string, { receivedAt }: RefusedDelivery, event: MediaEvent): boolean {
    this.#parts.checkOpen()
    const { database, events, letters } = this.#parts.file
    const replayed = inTransaction(database, () => {
      if (!letters.discard(key)) return false
      events.accept(hashKey(event.key), JSON.stringify(event), receivedAt)
      return true
    })
    if (replayed) this.#parts.onReplayed()
    return replayed
  }

  /** Replays the refused deliveries that were marked from outside. */
  replayMarked(): void {
    for (const { key, refused } of this.#letters.marked()) {
      if (refused !== undefined) void this.#replayMarked(key, refused)
    }
  }

  async #replayMarked(key: string, refused: RefusedDelivery): Promise<void> {
    const event = await this.#read(key, refused)
    try {
      if (event === undefined) this.#letters.unmark(key)
      else this.#accept(key, refused, event)
    } catch (error) {
      // Still marked, it is found when the file is next changed from outside, or opened.
      this.#parts.logger().warn({ key, err: error }, 'a refused delivery could not be replayed yet')
    }
  }

  async #read(key: string, refused: RefusedDelivery): Promise<MediaEvent | undefined> {
    try {
      return await this.#parts.readRefused(refused)
    } catch (error) {
      this.#parts.logger().error({ key, err: error }, 'a refused delivery could not be replayed')
      return undefined
    }
  }

  close(): void {
    this.#isClosed = true
  }
}
