import type { Delivery, ParsedBody } from '../delivery.ts'
import { WebhookError } from '../errors.ts'
import type { MediaEvent } from '../events/catalogue.ts'
import type { EventKeySource } from '../events/parse.ts'
import type { Inbox } from '../inbox/inbox.ts'
import type { Logger } from '../internal/logger.ts'
import type { MaybePromise } from '../internal/maybe-promise.ts'

/** Parses the event of a verified delivery. `eventId` is the id that the verifier vouches for. */
export type ParseDelivery = (
  delivery: Delivery,
  body: Uint8Array | ParsedBody,
  eventId: string | undefined,
) => MaybePromise<MediaEvent>

/** Leaves unreadable deliveries with the inbox, where it keeps them, before they are rejected. */
export function keepingUnreadable(
  parse: ParseDelivery,
  inbox: Inbox,
  eventKey: EventKeySource | undefined,
  logger: Logger,
): ParseDelivery {
  if (inbox.keepUnreadable === undefined) return parse

  const keep = async (
    error: WebhookError,
    { url, headers }: Delivery,
    body: Uint8Array | ParsedBody,
    eventId: string | undefined,
  ) => {
    try {
      await inbox.keepUnreadable?.({
        reason: error.message,
        receivedAt: new Date(),
        // Queries hold secrets, and so do headers: only the one header is kept that the event key is made of.
        url: url.replace(/[?#].*/s, ''),
        eventId: (typeof eventKey === 'object' && headers.get(eventKey.header)) || eventId,
        body: body instanceof Uint8Array ? body : new TextEncoder().encode(JSON.stringify(body.parsed)),
      })
    } catch (notKept) {
      logger.error({ err: notKept }, 'the inbox could not keep an unreadable delivery')
    }
    throw error
  }

  return (delivery, body, eventId) => {
    try {
      return parse(delivery, body, eventId)
    } catch (error) {
      if (error instanceof WebhookError) return keep(error, delivery, body, eventId)
      throw error
    }
  }
}
