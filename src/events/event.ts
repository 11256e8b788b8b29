/** The fields of every event, whoever sent it. */
export interface EventFields {
  /** Equal for two deliveries of one event. Use it to make effects idempotent. */
  readonly key: string
  /** `lookup` if no delivery brought it: `receiver.accept` took it from a look-up of yours. */
  readonly source: 'delivery' | 'lookup'
  /** The time at which the sender emitted it, to the millisecond. The exact text is in `payload`. */
  readonly emittedAt?: Date | undefined
  /** The id of the media item. The events of one media item are handled in order. */
  readonly mediaId: string
  /** The name that the verifier gives the one that sent it, such as a tenant. It is never read from the payload. */
  readonly principal?: string | undefined
  /** `true` for the media service's test delivery (`webhook.check`), whose media id is the nil UUID. */
  readonly test: boolean
  /**
   * The fields that were sent as another JSON type than expected, such as `['qualities']`, with `data.` before the name
   * in an envelope. It is usually empty. A field whose meaning is obvious was read. Any other is `undefined`. The JSON
   * that was sent is in `payload`.
   */
  readonly issues: readonly string[]
  /** The JSON object as sent, unknown fields included. */
  readonly payload: Readonly<Record<string, unknown>>
}

/**
 * A type outside the sender's catalogue: a string that no literal is equal to, so that `event.type === 'partial.finished'`
 * rules it out. It is declared as an enum only because the compiler narrows no other kind of nominal string.
 */
export declare enum UnknownEventType {
  outsideTheCatalogue = 'a type outside the catalogue',
}
