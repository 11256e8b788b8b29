/** Fields of every event, whoever sent it. */
export interface EventFields {
  /** Identifies the event: a redelivery has the same key. Use it to make effects idempotent. */
  readonly key: string
  /** `lookup` if `receiver.accept` took it from your look-up instead of a delivery. */
  readonly source: 'delivery' | 'lookup'
  /** When the sender emitted it, to the millisecond. `payload` has the exact text. */
  readonly emittedAt?: Date | undefined
  /** Events of one media item are handled in order. */
  readonly mediaId: string
  /**
   * `true` if an event of this media item with a later `emittedAt` was tried before: what it says may be out of date.
   * Absent otherwise, and with `memoryInbox`, `bullmqInbox` and `queueInbox`, which can't tell.
   */
  readonly late?: true | undefined
  /** The sender as named by the verifier, such as a tenant. Never read from the payload. */
  readonly principal?: string | undefined
  /** `true` for the media service's test delivery (`webhook.check`), whose media id is the nil UUID. */
  readonly test: boolean
  /**
   * Fields sent with an unexpected JSON type, such as `['qualities']` (`data.` in front in an envelope). Usually empty.
   * A field is read if its meaning is obvious, otherwise `undefined`; `payload` keeps what was sent.
   */
  readonly issues: readonly string[]
  /** The JSON object as sent, unknown fields included. */
  readonly payload: Readonly<Record<string, unknown>>
}

/**
 * A type outside the sender's catalogue. No literal equals it, so `event.type === 'partial.finished'` rules it out. An
 * enum only because TypeScript narrows no other nominal string.
 */
export declare enum UnknownEventType {
  outsideTheCatalogue = 'a type outside the catalogue',
}
