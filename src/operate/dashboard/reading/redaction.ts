import { decodeText, parseJsonObject } from '../../../events/json.ts'
import type { MediaEvent } from '../../../events/media-service/catalogue.ts'
import type { UnreadableDelivery } from '../../../inbox/reading.ts'
import { guarded } from '../../../internal/guarded.ts'
import type { Logger } from '../../../internal/logger.ts'
import { isPromise } from '../../../internal/maybe-promise.ts'
import { copyJson } from '../../../internal/realm.ts'
import { encoder } from '../../../internal/utf8.ts'
import type { DashboardOptions } from '../options.ts'

/** Applies the `redact` option. `undefined` means hidden. */
export class Redaction {
  readonly #redact: DashboardOptions['redact']
  readonly #logger: Logger
  #hasThrown = false

  constructor(redact: DashboardOptions['redact'], logger: Logger) {
    this.#redact = redact
    this.#logger = logger
  }

  payload({ payload }: MediaEvent): object | undefined {
    return this.#shown(payload)
  }

  title(event: MediaEvent): string | undefined {
    const { title } = event
    if (title === undefined || this.#redact === undefined) return title
    const shown = this.#shown(event.payload)
    return shown !== undefined && holds(shown, title) ? title : undefined
  }

  /** The body of an unreadable delivery. With a `redact` function, only JSON objects are shown. */
  bytes({ body }: UnreadableDelivery): Uint8Array | undefined {
    if (this.#redact === undefined) return body
    try {
      const shown = this.#shown(parseJsonObject(decodeText(body)))
      return shown && encoder.encode(JSON.stringify(shown))
    } catch {
      return undefined
    }
  }

  #shown(payload: object): object | undefined {
    if (this.#redact === undefined) return payload
    if (this.#redact === true) return undefined
    const redact = this.#redact
    return guarded(
      () => {
        // A copy: handlers get the original.
        const shown: unknown = redact(copyJson(payload) as Record<string, unknown>)
        if (isPromise(shown)) {
          shown.then(undefined, () => {})
          throw new TypeError('redact returned a promise: it must return the payload to show')
        }
        // A BigInt, a cycle or a throwing getter must fail here, not halfway through a page.
        return typeof shown === 'object' && shown !== null ? JSON.parse(JSON.stringify(shown)) : undefined
      },
      (error) => this.#threw(error),
    )
  }

  #threw(err: unknown): void {
    if (!this.#hasThrown)
      this.#logger.error({ err }, 'redact, an option of the dashboard, failed: the payload is hidden')
    this.#hasThrown = true
  }
}

/** Tells whether a text is among the values of an object, at any depth. */
const holds = (value: unknown, text: string): boolean =>
  value === text ||
  (typeof value === 'object' && value !== null && Object.values(value).some((each) => holds(each, text)))
