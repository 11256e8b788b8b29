import type { MediaEvent } from '../events/media-service/catalogue.ts'
import type { AnySender } from '../events/sender.ts'
import type { Logger } from '../internal/logger.ts'
import type { Verifier } from '../verify/verifier.ts'
import type { Delivery } from './delivery.ts'

/** Fields and types remembered, each. Bounded, because a sender can make up types forever. */
const maxRemembered = 100

/** Headers that may carry a signature. The service documents a signature, but not its header. */
const signatureHeaders = [
  'signature',
  'x-signature',
  'webhook-signature',
  'x-webhook-signature',
  'stream-signature',
  'x-stream-signature',
  'x-hub-signature-256',
  'x-hmac-sha256',
  'svix-signature',
]

/** Deliveries checked for a signature header. */
const maxSignatureChecks = 100

type SignedPart = Pick<Delivery, 'url' | 'headers'>

/** Warns once about each sign that the sender has changed. */
export class SenderChanges {
  readonly #logger: Logger
  readonly #warned = new Set<string>()
  readonly #types = new Set<string>()
  readonly #readHeaders = new Set<string>()
  readonly #verifier: Verifier
  readonly #sender: Pick<AnySender, 'name' | 'types'>
  /** Deliveries left to check. 0 for a verifier that needs the bytes: it checks a signature already. */
  #checksLeft: number

  constructor(logger: Logger, verifier: Verifier, sender: AnySender) {
    this.#sender = sender
    this.#logger = logger
    this.#verifier = verifier
    this.#checksLeft = verifier.needsBytes ? 0 : maxSignatureChecks
  }

  /** Wraps the delivery for the verifier, to record which headers it reads. */
  watch(delivery: SignedPart): SignedPart {
    if (this.#checksLeft === 0) return delivery
    const { url, headers } = delivery
    const get = (name: string) => {
      this.#readHeaders.add(name.toLowerCase())
      return headers.get(name)
    }
    return { url, headers: { get } }
  }

  /** Warns if a verified delivery carries a signature that the verifier has not read. */
  checkSignature({ headers }: SignedPart): void {
    if (this.#checksLeft === 0) return
    this.#checksLeft--
    const header = signatureHeaders.find((name) => !this.#readHeaders.has(name) && headers.get(name) !== null)
    if (header === undefined) return
    this.#checksLeft = 0
    this.#logger.warn(
      { header },
      `deliveries have the header ${header}, which ${this.#verifier.name} does not check: run npx media-webhooks listen to find its verifier`,
    )
  }

  check({ issues, type }: MediaEvent): void {
    if (issues.length === 0) return
    for (const field of issues) {
      if (isNew(this.#warned, field))
        this.#logger.warn({ field, type }, `field ${field} has an unexpected JSON type: see event.issues`)
    }
  }

  /** Logs the warning of a sender about its events. */
  warnOnce(warning: string): void {
    if (isNew(this.#warned, warning)) this.#logger.warn({ sender: this.#sender.name }, warning)
  }

  checkIgnored({ type }: MediaEvent): void {
    if (this.#sender.types.includes(type) || !isNew(this.#types, type)) return
    this.#logger.warn({ type }, 'events of an unknown type are ignored: only onAny receives them')
  }
}

function isNew(known: Set<string>, change: string): boolean {
  if (known.has(change) || known.size >= maxRemembered) return false
  known.add(change)
  return true
}
