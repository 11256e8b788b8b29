import { randomUUID } from 'node:crypto'
import { type Clock, dateOf } from '../shared/clock.ts'
import type { Records } from '../shared/records.ts'
import type { DeliveryRecord, Sending } from './sending.ts'
import { Turns } from './turns.ts'

/** What a sending is made in. */
export interface Run {
  readonly signal: AbortSignal
  /** Waits until a delivery may be made, and returns what is to be called when it is over. */
  readonly turn: () => Promise<() => void>
  /** Records the deliveries so far, when another one follows. */
  readonly made: (deliveries: readonly DeliveryRecord[]) => void
}

/** How many deliveries are made at once. A sending that waits for its retry makes none. */
const deliveriesAtOnce = 64

/** Takes sendings from their beginning to their end, and keeps the record of each. */
export class SendingRuns {
  readonly #records: Records<Sending>
  readonly #clock: Clock
  readonly #acknowledged: (sending: Sending) => void
  readonly #turns = new Turns(deliveriesAtOnce)
  readonly #unfinished = new Set<AbortController>()

  constructor(records: Records<Sending>, clock: Clock, acknowledged: (sending: Sending) => void) {
    this.#records = records
    this.#clock = clock
    this.#acknowledged = acknowledged
  }

  /** Records a sending that has yet to be run, or never will be. */
  begin(
    of: Pick<Sending, 'webhookId' | 'url' | 'payload' | 'behaviour'>,
    state: 'waiting' | 'dropped' = 'waiting',
  ): Sending {
    const sending = { id: randomUUID(), ...of, createdAt: dateOf(this.#clock()), state, deliveries: [] }
    this.#records.put(sending)
    return sending
  }

  /**
   * Resolves when the sending is over.
   * @param lane of its turns
   */
  async run(
    { id }: Sending,
    lane: string,
    deliver: (run: Run) => Promise<readonly DeliveryRecord[]>,
  ): Promise<Sending> {
    const abort = new AbortController()
    const { signal } = abort
    const madeSoFar = (error: unknown) => {
      if (!signal.aborted) throw error
      return (this.#records.get(id) as Sending).deliveries
    }
    this.#unfinished.add(abort)
    try {
      const deliveries = await deliver(this.#runOf(id, lane, signal)).catch(madeSoFar)
      const sending = this.#change(id, { deliveries, state: isAcknowledged(deliveries) ? 'acknowledged' : 'failed' })
      if (sending.state === 'acknowledged') this.#acknowledged(sending)
      return sending
    } finally {
      this.#unfinished.delete(abort)
    }
  }

  /** Ends all that are unfinished. */
  abort(): void {
    for (const each of this.#unfinished) each.abort()
  }

  #runOf(id: string, lane: string, signal: AbortSignal): Run {
    return {
      signal,
      turn: async () => {
        const leave = await this.#turns.take(lane, signal)
        this.#change(id, { state: 'delivering' })
        return leave
      },
      // After an acknowledgement, what follows is a copy.
      made: (deliveries) => {
        this.#change(id, { deliveries, state: isAcknowledged(deliveries) ? 'waiting' : 'retrying' })
      },
    }
  }

  #change(id: string, fields: Partial<Pick<Sending, 'state' | 'deliveries'>>): Sending {
    const sending = { ...(this.#records.get(id) as Sending), ...fields }
    this.#records.put(sending)
    return sending
  }
}

const isAcknowledged = (deliveries: readonly DeliveryRecord[]): boolean =>
  deliveries.some(({ failure, copy }) => failure === undefined && !copy)
