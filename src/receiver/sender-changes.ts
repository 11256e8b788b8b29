import type { Delivery } from '../delivery.ts'
import type { MediaEvent } from '../events/media-service/catalogue.ts'
import type { AnySender } from '../events/sender.ts'
import type { Logger } from '../internal/logger.ts'
import type { Verifier } from '../verify/verifier.ts'

/** Maximum number of changes of a kind that are remembered, since a sender can make up any number of types. */
const maxRemembered = 100

/** Names of headers that may carry a signature. The service documents one, and does not name it. */
const signatureHeaders = [
  'signature',
  'x-signature',
  'webhook-signature',
  'x-webhook-signature',
  'stream-signature',
  'x-stream-signature',
  'x-hub-signature-256',
  'x-hmac-sha256',
]

/** Maximum number of deliveries whose headers are checked for a signature. */
const maxSignatureChecks = 100

type SignedPart = Pick<Delivery, 'url' | 'headers'>

/** Warns once of each sign that the sender has changed. */
export class SenderChanges {
  readonly #logger: Logger
  readonly #fields = new Set<string>()
  readonly #types = new Set<string>()
  readonly #readHeaders = new Set<string>()
  readonly #verifier: Verifier
  readonly #catalogue: readonly string[]
  /** The number of deliveries left to check for a signature. A verifier that needs the bytes reads one of its own. */
  #checksLeft: number

  constructor(logger: Logger, verifier: Verifier, { types }: AnySender) {
    this.#catalogue = types
    this.#logger = logger
    this.#verifier = verifier
    this.#checksLeft = verifier.needsBytes ? 0 : maxSignatureChecks
  }

  /** Returns the part of a delivery that the verifier sees, and remembers the headers that it reads. */
  watch(delivery: SignedPart): SignedPart {
    if (this.#checksLeft === 0) return delivery
    const { url, headers } = delivery
    const get = (name: string) => {
      this.#readHeaders.add(name.toLowerCase())
      return headers.get(name)
    }
    return { url, headers: { get } }
  }

  /** Checks a verified delivery for a signature that the verifier has not read. */
  checkSignature({ headers }: SignedPart): void {
    if (this.#checksLeft === 0) return
    this.#checksLeft--
    const header = signatureHeaders.find((name) => !this.#readHeaders.has(name) && headers.get(name) !== null)
    if (header === undefined) return
    this.#checksLeft = 0
    this.#logger.warn(
      { header },
      `deliveries have the header ${header}, which ${this.#verifier.name} does not verify: media-webhooks listen finds the verifier for it`,
    )
  }

  /** Checks an event that was just parsed. */
  check({ issues, type }: MediaEvent): void {
    for (const field of issues) {
      if (isNew(this.#fields, field))
        this.#logger.warn({ field, type }, `field ${field} has another JSON type than expected: see event.issues`)
    }
  }

  /** Checks the type of an event that no handler is registered for. */
  checkIgnored({ type }: MediaEvent): void {
    if (this.#catalogue.includes(type) || !isNew(this.#types, type)) return
    this.#logger.warn({ type }, 'events of an unknown type are ignored: only onAny receives them')
  }
}

function isNew(known: Set<string>, change: string): boolean {
  if (known.has(change) || known.size >= maxRemembered) return false
  known.add(change)
  return true
}
