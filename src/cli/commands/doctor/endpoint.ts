import { randomUUID } from 'node:crypto'
import { testPayload } from '../../../emulator/media/lifecycle.ts'
import { type SigningOptions, signerFor } from '../../../emulator/sending/signing.ts'
import { systemClock } from '../../../emulator/shared/clock.ts'
import type { EventType } from '../../../index.ts'
import { flatBody } from '../../../testing/payload.ts'
import type { Draft, Signer } from '../../../testing/signers.ts'
import { maskedUrl, withoutSecret } from '../../shared/mask.ts'
import { hasTokenInPath, secretOf } from '../../shared/schemes.ts'
import { plain } from '../../shared/text.ts'
import { type Probe, probe, type Reply } from './probe.ts'

/** An event of the doctor's: the body is that of a test delivery, the type apart. */
export interface TestEvent {
  readonly type: EventType
  readonly id: string
  readonly body: Uint8Array
}

/** What is known of the endpoint that is tried. */
interface Target {
  /** As it was given; it may hold a secret. */
  readonly url: string
  /** How genuine deliveries are signed. */
  readonly scheme: SigningOptions | undefined
  /** Whether it is said to accept deliveries from anyone. */
  readonly open: boolean
}

/** The endpoint that is tried. */
export interface Endpoint extends Target {
  /**
   * An event that was not sent before.
   * @param type by default that of the service's test delivery
   */
  newEvent(type?: EventType): TestEvent
  /** Delivers an event, as the service would unless told otherwise. */
  deliver(event: TestEvent, how?: Manner): Promise<Reply>
  /** How many requests were made. */
  readonly requests: number
}

/** How a delivery differs from the service's. */
export interface Manner extends Partial<Pick<Probe, 'method' | 'url' | 'chunked'>> {
  readonly contentType?: string
  /** In the place of the genuine signer. */
  readonly sign?: Signer
}

const userId = randomUUID()

/** The signer of what carries no signature. */
export const unsigned: Signer = async (draft) => draft

export function createEndpoint(target: Target, aborted: AbortSignal): Endpoint {
  const { url, scheme } = target
  let requests = 0
  let last = 0n
  return {
    ...target,
    get requests() {
      return requests
    },
    newEvent(type = 'encoding.started') {
      // Two events of one moment would be one event.
      const now = systemClock()
      last = now > last ? now : last + 1n
      const body = flatBody({ ...testPayload(userId, last), type })
      return { type, id: randomUUID(), body: new TextEncoder().encode(body) }
    },
    async deliver({ id, body }, { sign = genuine(scheme, id), method = 'POST', contentType, chunked, ...how } = {}) {
      requests += 1
      const headers = { 'Content-Type': contentType ?? 'application/json' }
      const signed: Draft = await sign({ url: how.url ?? url, headers, body })
      const reply = await probe({ method, ...signed, ...(chunked && { chunked }) }, aborted)
      return reply.location === undefined ? reply : { ...reply, location: shown(reply.location, scheme) }
    },
  }
}

/** A URL of the endpoint, for the user to see. */
export function shown(url: string, scheme: SigningOptions | undefined): string {
  return plain(withoutSecret(maskedUrl(url, hasTokenInPath(scheme)), scheme && secretOf(scheme)))
}

const genuine = (scheme: SigningOptions | undefined, eventId: string): Signer =>
  scheme === undefined ? unsigned : signerFor(scheme, eventId)
