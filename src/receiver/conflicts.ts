import { LRUCache } from 'lru-cache'
import type { ParsedBody } from '../delivery.ts'
import { isObject, type JsonObject } from '../events/json.ts'
import type { MediaEvent } from '../events/media-service/catalogue.ts'
import type { AnySender } from '../events/sender.ts'
import type { Inbox } from '../inbox/inbox.ts'
import type { ConflictReport } from './hooks.ts'

/** Events kept in memory for comparison. */
const maxEvents = 1_000

/** Largest body kept (bytes). */
const maxBytes = 4_096

/** Finds duplicates whose payload differs from the accepted one. Reports each key once. */
export class Conflicts {
  readonly #inbox: Inbox
  readonly #sender: AnySender
  readonly #report: (report: ConflictReport) => void
  /** By key. No `event`: nothing to compare with, or already reported. */
  readonly #accepted = new LRUCache<string, { readonly event?: MediaEvent | undefined }>({ max: maxEvents })
  #isReading = false

  constructor(inbox: Inbox, sender: AnySender, report: (report: ConflictReport) => void) {
    this.#inbox = inbox
    this.#sender = sender
    this.#report = report
  }

  accepted(event: MediaEvent, body: Uint8Array | ParsedBody): void {
    const isLarge = ArrayBuffer.isView(body) && body.byteLength > maxBytes
    if (!isLarge) this.#accepted.set(event.key, { event })
  }

  async duplicate(event: MediaEvent): Promise<void> {
    const { key, type, mediaId } = event
    const { event: first = event } = this.#accepted.get(key) ?? (await this.#stored(key))
    const fields = differingFields(this.#sender.comparable(first), this.#sender.comparable(event))
    if (fields.length === 0) return
    this.#accepted.set(key, {})
    this.#report({ key, type, mediaId, fields })
  }

  /** Reads the accepted event from the inbox; skipped while another read runs. */
  async #stored(key: string): Promise<{ readonly event?: MediaEvent | undefined }> {
    if (this.#isReading) return {}
    this.#isReading = true
    try {
      const event = (await this.#inbox.events?.get(key))?.event
      // A look-up has no payload to compare.
      const stored = this.#accepted.get(key) ?? (event?.source === 'delivery' ? { event } : {})
      this.#accepted.set(key, stored)
      return stored
    } finally {
      this.#isReading = false
    }
  }
}

const differingFields = (first: JsonObject, second: JsonObject): string[] =>
  Object.keys({ ...first, ...second }).filter(
    (name) => !isEqual(emptyAsAbsent(first[name]), emptyAsAbsent(second[name])),
  )

/** As the parser does. */
const emptyAsAbsent = (value: unknown): unknown => (value === null || value === '' ? undefined : value)

const isEqual = (first: unknown, second: unknown): boolean =>
  isObject(first) && isObject(second)
    ? Array.isArray(first) === Array.isArray(second) &&
      Object.keys({ ...first, ...second }).every((name) => isEqual(first[name], second[name]))
    : first === second
