import { randomUUID } from 'node:crypto'
import { testPayload } from '../../../emulator/media/lifecycle.ts'
import { eventIdOf, type SigningOptions, signerFor } from '../../../emulator/sending/signing.ts'
import { systemClock } from '../../../emulator/shared/clock.ts'
import type { EventType } from '../../../index.ts'
import { flatBody } from '../../../testing/payload.ts'
import type { Draft, Signer } from '../../../testing/signers.ts'
import type { GivenBody } from '../../shared/body-file.ts'
import { maskedUrl, withoutSecret } from '../../shared/mask.ts'
import { hasTokenInPath, secretOf } from '../../shared/schemes.ts'
import { plain } from '../../shared/text.ts'
import { withoutCredentialsOf } from './credentials.ts'
import { type Probe, probe, type Reply } from './probe.ts'

/** An event to deliver: the sample, or one that looks like the service's test delivery except for its type. */
export interface TestEvent {
  readonly id: string
  readonly body: Uint8Array
}

/** The endpoint to examine, as the user describes it. */
interface Target {
  /** The URL as it was given. It can contain a secret. */
  readonly url: string
  /** The scheme that signs genuine deliveries. */
  readonly scheme: SigningOptions | undefined
  /** `true` if it accepts deliveries from anyone on purpose. */
  readonly open: boolean
  /** A body of another service, which all deliveries have. They are duplicates of each other. */
  readonly sample: GivenBody | undefined
}

/** The endpoint to examine. */
export interface Endpoint extends Target {
  /**
   * Creates an event that was not sent before, or returns the sample.
   * @param type by default the type of the service's test delivery
   * @param title by default the title of the service's test delivery
   */
  newEvent(type?: EventType, title?: string): TestEvent
  /** Delivers an event as the service would, except for the given variation. */
  deliver(event: TestEvent, variation?: Variation): Promise<Reply>
  /** The number of requests made so far. */
  readonly requests: number
}

/** The differences between a delivery and the service's own. */
export interface Variation extends Partial<Pick<Probe, 'method' | 'url' | 'chunked'>> {
  readonly contentType?: string
  /** Replaces the genuine signer. */
  readonly sign?: Signer
}

const userId = randomUUID()

/** Adds no signature. */
export const unsigned: Signer = async (draft) => draft

/** @param aborted ends a request that is under way */
export function createEndpoint(target: Target, aborted: AbortSignal): Endpoint {
  const { url, scheme, sample } = target
  const unsignedUrl = withoutCredentialsOf(scheme, url)
  const firstSent = new Map<string, { readonly at: number; times: number }>()
  let requests = 0
  let last = 0n
  return {
    ...target,
    get requests() {
      return requests
    },
    newEvent(type = 'encoding.started', title) {
      if (sample !== undefined) return { id: eventIdOf(sample.text), body: Buffer.from(sample.text) }
      // Two events with the same time would have the same key.
      const now = systemClock()
      last = now > last ? now : last + 1n
      const body = flatBody({ ...testPayload(userId, last), type, ...(title !== undefined && { title }) })
      return { id: randomUUID(), body: new TextEncoder().encode(body) }
    },
    async deliver({ id, body }, { sign, method = 'POST', contentType, chunked, ...variation } = {}) {
      requests += 1
      // A retry is signed anew, seconds apart. Two deliveries with the same signature would look like a replay.
      const first = firstSent.get(id) ?? { at: Date.now(), times: 0 }
      firstSent.set(id, first)
      const signedAt = first.at - first.times++ * 1_000
      const signer = sign ?? genuine(scheme, id, () => signedAt)
      const headers = { 'Content-Type': contentType ?? 'application/json' }
      const signed: Draft = await signer({ url: variation.url ?? unsignedUrl, headers, body })
      const reply = await probe({ method, ...signed, ...(chunked && { chunked }) }, aborted)
      return reply.location === undefined ? reply : { ...reply, location: maskedEndpointUrl(reply.location, scheme) }
    },
  }
}

/** Masks the secrets in a URL of the endpoint, to print it. */
export function maskedEndpointUrl(url: string, scheme: SigningOptions | undefined): string {
  return plain(withoutSecret(maskedUrl(url, hasTokenInPath(scheme)), scheme && secretOf(scheme)))
}

const genuine = (scheme: SigningOptions | undefined, eventId: string, now: () => number): Signer =>
  scheme === undefined ? unsigned : signerFor(scheme, eventId, now)
