import { WebhookError } from '../errors.ts'
import { type LookupOutcome, parseLookup } from '../events/lookup.ts'
import type { MediaEvent } from '../events/media-service/catalogue.ts'
import type { Parsing } from '../events/parse.ts'
import type { HandlerRegistry } from '../handlers/registry.ts'
import type { AcceptOptions, Inbox } from '../inbox/inbox.ts'
import { aFunction, checkOptions, type Rule } from '../internal/check-options.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import type { LookupOptions } from './options.ts'
import { acceptIn } from './steps.ts'

/** The inbox knows what else it must be. */
const aClient: Rule = ['a client of the database', (value: unknown) => typeof value === 'object' && value !== null]

/** How the path of deliveries puts an event into the inbox. */
type PutInInbox = (event: MediaEvent, waitUntil: AcceptOptions['waitUntil']) => MaybePromise<unknown>

interface LookupPath {
  readonly parsing: Parsing
  readonly registry: HandlerRegistry
  readonly inbox: Inbox
}

/**
 * Accepts a look-up as if it were a verified delivery.
 * @returns its event and what became of it
 */
export async function acceptLookup(
  found: object,
  { waitUntil, client }: LookupOptions,
  { parsing, registry, inbox }: LookupPath,
  put: PutInInbox,
): Promise<{ readonly event: MediaEvent; readonly outcome: LookupOutcome }> {
  const parsed = parseLookup(parsing, found)
  const event = isPromise(parsed) ? await parsed : parsed
  const accept = () => (client === undefined ? put(event, waitUntil) : acceptIn(inbox, client, event))
  // Not awaited before: a synchronous client is in its transaction only within this call.
  const accepting = registry.handles(event.type, event.test) ? accept() : 'ignored'
  return { event, outcome: (await accepting) as LookupOutcome }
}

/** @throws WebhookError `invalid_option` */
export function checkLookup(
  options: LookupOptions,
  { ack, lossWithoutWait }: { readonly ack: string; readonly lossWithoutWait: string | undefined },
): void {
  checkOptions('accept', options, { waitUntil: aFunction, client: aClient })
  const risk = options.waitUntil === undefined && lossWithoutWait
  if (ack === 'handled') throw new WebhookError('invalid_option', "accept: needs ack 'accepted'")
  if (risk) throw new WebhookError('invalid_option', `accept: ${risk}, or pass waitUntil`)
}
