import type { Delivery, ParsedBody } from '../delivery.ts'
import { WebhookError } from '../errors.ts'
import type { MediaEvent } from '../events/catalogue.ts'
import { checkJsonObject, parseJsonObject } from '../events/json.ts'
import { type EventKeySource, parseEvent } from '../events/parse.ts'
import type { Inbox, ReadRefused } from '../inbox/inbox.ts'
import type { MaybePromise } from '../internal/maybe-promise.ts'

/** Reads the event of a delivery that passed verification. `eventId`: the id that the verifier vouches for. */
type Read = (delivery: Delivery, body: Uint8Array | ParsedBody, eventId: string | undefined) => MaybePromise<MediaEvent>

/** Reads events. What is genuine and cannot be read is left with the inbox, where that keeps such deliveries. */
export function eventReader(inbox: Inbox, eventKey: EventKeySource | undefined, onError: (error: unknown) => void) {
  const parse: Read = (delivery, body, eventId) => {
    const payload = body instanceof Uint8Array ? parseJsonObject(body) : checkJsonObject(body.parsed)
    return parseEvent(payload, delivery, eventId, eventKey)
  }

  const refuse = async (
    error: WebhookError,
    { url, headers }: Delivery,
    body: Uint8Array | ParsedBody,
    id?: string,
  ) => {
    try {
      await inbox.refuse?.({
        reason: error.message,
        receivedAt: new Date(),
        // Queries hold secrets, and so do headers: of those only the one is kept that the event key is made of.
        url: url.replace(/[?#].*/s, ''),
        eventId: (typeof eventKey === 'object' && headers.get(eventKey.header)) || id,
        body: body instanceof Uint8Array ? body : new TextEncoder().encode(JSON.stringify(body.parsed)),
      })
    } catch (notKept) {
      onError(notKept)
    }
    throw error
  }

  const readEvent: Read = (delivery, body, eventId) => {
    try {
      return parse(delivery, body, eventId)
    } catch (error) {
      if (inbox.refuse === undefined || !(error instanceof WebhookError)) throw error
      return refuse(error, delivery, body, eventId)
    }
  }

  const readRefused: ReadRefused = ({ url, body, eventId }) =>
    parse({ method: 'POST', url, headers: new Headers(), body }, body, eventId)

  return { readEvent, readRefused }
}
