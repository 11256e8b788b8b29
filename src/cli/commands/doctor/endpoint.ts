import { randomUUID } from 'node:crypto'
import type { EventType } from '../../../index.ts'
import { testPayload } from '../../../service/emulator/media/lifecycle.ts'
import { makeEventId, type SigningOptions, signerFor } from '../../../service/emulator/sending/signing.ts'
import { systemClock } from '../../../service/emulator/shared/clock.ts'
import { flatBody } from '../../../testing/payload.ts'
import type { Draft, Signer } from '../../../testing/signers.ts'
import type { GivenBody } from '../../shared/body-file.ts'
import { maskedUrl, withoutSecret } from '../../shared/mask.ts'
import { hasTokenInPath, secretOf } from '../../shared/schemes.ts'
import { plain } from '../../shared/text.ts'
import { removeCredentials } from './credentials.ts'
import { type Probe, probe, type Reply } from './probe.ts'

/** An event to deliver: the sample, or the service's test delivery with any type. */
export interface TestEvent {
  readonly id: string
  readonly body: Uint8Array
}

interface Target {
  /** As given. It may contain a secret. */
  readonly url: string
  readonly scheme: SigningOptions | undefined
  /** `true` if it accepts unsigned deliveries on purpose. */
  readonly open: boolean
  /** Another service's body, sent in every delivery. All are duplicates. */
  readonly sample: GivenBody | undefined
}

export interface Endpoint extends Target {
  /** Creates a new event, or returns the sample. The defaults are those of the service's test delivery. */
  newEvent(type?: EventType, title?: string): TestEvent
  /** Delivers an event as the service would, apart from the variation. */
  deliver(event: TestEvent, variation?: Variation): Promise<Reply>
  readonly requests: number
}

export interface Variation extends Partial<Pick<Probe, 'method' | 'url' | 'chunked'>> {
  readonly contentType?: string
  readonly sign?: Signer
}

const userId = randomUUID()

export const unsigned: Signer = async (draft) => draft

export function createEndpoint(target: Target, aborted: AbortSignal): Endpoint {
  const { url, scheme, sample } = target
  const unsignedUrl = removeCredentials(scheme, url)
  const firstSent = new Map<string, { readonly at: number; times: number }>()
  let requests = 0
  let last = 0n
  return {
    ...target,
    get requests() {
      return requests
    },
    newEvent(type = 'encoding.started', title) {
      if (sample !== undefined) return { id: makeEventId(sample.text), body: Buffer.from(sample.text) }
      // Events with equal times would have equal keys.
      const now = systemClock()
      last = now > last ? now : last + 1n
      const body = flatBody({ ...testPayload(userId, last), type, ...(title !== undefined && { title }) })
      return { id: randomUUID(), body: new TextEncoder().encode(body) }
    },
    async deliver({ id, body }, { sign, method = 'POST', contentType, chunked, ...variation } = {}) {
      requests += 1
      // Retries are signed anew, a second apart. Equal signatures would look like a replay attack.
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

export function maskedEndpointUrl(url: string, scheme: SigningOptions | undefined): string {
  return plain(withoutSecret(maskedUrl(url, hasTokenInPath(scheme)), scheme && secretOf(scheme)))
}

const genuine = (scheme: SigningOptions | undefined, eventId: string, now: () => number): Signer =>
  scheme === undefined ? unsigned : signerFor(scheme, eventId, now)
