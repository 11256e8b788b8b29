import { sizeOf } from '../events/json.ts'
import type { MediaEvent } from '../events/media-service/catalogue.ts'
import type { Parsing } from '../events/parse.ts'
import type { ImmediateResult, Inbox } from '../inbox/inbox.ts'
import type { Logger } from '../internal/logger.ts'
import { within } from '../internal/timers.ts'
import { AcceptedEvents } from './accepted-events.ts'
import type { ConflictReport } from './hooks.ts'

/** Memory budget for duplicates whose accepted event is being read (bytes). */
const maxBytes = 4_194_304

/** Time limit for reading an event (ms). */
const maxReadMs = 10_000

/** Finds duplicates whose payload differs from the accepted one. Reports each key once. */
export class Conflicts {
  readonly accepted: AcceptedEvents
  readonly #inbox: Inbox
  readonly #report: (report: ConflictReport) => void
  readonly #logger: Logger
  /** Keys of events that are being handled, with `ack: 'handled'`. */
  readonly #handling = new Set<string>()
  #bytes = 0
  #reading: Promise<void> = Promise.resolve()

  constructor(inbox: Inbox, { sender, keySource }: Parsing, report: (report: ConflictReport) => void, logger: Logger) {
    this.#inbox = inbox
    this.accepted = new AcceptedEvents(sender, typeof keySource === 'function')
    this.#report = report
    this.#logger = logger
  }

  /** Compares the deliveries of an event that is being handled: each gets the result of the first. */
  watch(event: MediaEvent, handling: Promise<ImmediateResult>): void {
    const isFirst = !this.#handling.has(event.key)
    this.#handling.add(event.key)
    const ended = (result?: ImmediateResult) => {
      if (isFirst) this.#handling.delete(event.key)
      if (result === 'handled') isFirst ? this.accepted.remember(event) : this.#compare(event)
    }
    void handling.then(ended, () => ended())
  }

  duplicate(event: MediaEvent): void {
    if (this.#compare(event)) return
    const size = sizeOf(event)
    if (this.#bytes + size > maxBytes) return
    this.#bytes += size
    // One at a time: deliveries need the inbox more.
    this.#reading = this.#reading.then(async () => {
      if (!this.#compare(event)) await this.#compareWithStored(event)
      this.#bytes -= size
    })
  }

  /** Returns `false` if the accepted event is not remembered. */
  #compare(event: MediaEvent): boolean {
    const fields = this.accepted.differing(event)
    if (fields !== undefined && fields.length > 0) this.#found(event, fields)
    return fields !== undefined
  }

  async #compareWithStored(event: MediaEvent): Promise<void> {
    try {
      const read = Promise.resolve(this.#inbox.events?.get(event.key))
      const record = await within(maxReadMs, read, () => undefined)
      if (record?.event !== undefined) {
        this.accepted.remember(record.event)
        this.#compare(event)
      } else if (record !== undefined) {
        // It was handled: the payload is gone.
        const fields = (['type', 'mediaId'] as const).filter((name) => record[name] !== event[name])
        if (fields.length > 0) this.#found(event, fields)
      }
    } catch (err) {
      this.#logger.debug({ err }, 'a duplicate could not be compared')
    }
  }

  #found({ key, type, mediaId }: MediaEvent, differing: readonly string[]): void {
    this.accepted.exempt(key)
    this.#report({ key, type, mediaId, fields: differing.filter((name) => name !== '') })
  }
}
