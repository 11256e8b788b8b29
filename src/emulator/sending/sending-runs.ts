import { randomUUID } from 'node:crypto'
import { type Clock, dateOf } from '../shared/clock.ts'
import type { Records } from '../shared/records.ts'
import type { DeliveryRecord, Sending } from './sending.ts'
import { Turns } from './turns.ts'

/** Connects the deliveries of a sending with its record. */
export interface SendingRun {
  readonly signal: AbortSignal
  /** Waits until a delivery may be made. Resolves with a function to call after the delivery. */
  readonly turn: () => Promise<() => void>
  /** Records the deliveries so far, when another one follows. */
  readonly onProgress: (deliveries: readonly DeliveryRecord[]) => void
}

/** The most deliveries that are made at once. A sending that waits for a retry does not count. */
const deliveriesAtOnce = 64

/** Runs sendings, and keeps the record of each up to date. */
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

  /** Creates the record of a sending that has yet to run, or is dropped. */
  create(
    fields: Pick<Sending, 'webhookId' | 'url' | 'payload' | 'behaviour'>,
    state: 'waiting' | 'dropped' = 'waiting',
  ): Sending {
    const sending = { id: randomUUID(), ...fields, createdAt: dateOf(this.#clock()), state, deliveries: [] }
    this.#records.put(sending)
    return sending
  }

  /**
   * Runs a sending. Resolves when it has ended.
   * @param lane the lane that its deliveries wait in
   * @param deliver makes the deliveries
   */
  async run(
    { id }: Sending,
    lane: string,
    deliver: (run: SendingRun) => Promise<readonly DeliveryRecord[]>,
  ): Promise<Sending> {
    const abort = new AbortController()
    const { signal } = abort
    const deliveriesSoFar = (error: unknown) => {
      if (!signal.aborted) throw error
      return (this.#records.get(id) as Sending).deliveries
    }
    this.#unfinished.add(abort)
    try {
      const deliveries = await deliver(this.#runOf(id, lane, signal)).catch(deliveriesSoFar)
      const sending = this.#change(id, { deliveries, state: isAcknowledged(deliveries) ? 'acknowledged' : 'failed' })
      if (sending.state === 'acknowledged') this.#acknowledged(sending)
      return sending
    } finally {
      this.#unfinished.delete(abort)
    }
  }

  /** Aborts every unfinished sending. */
  abort(): void {
    for (const each of this.#unfinished) each.abort()
  }

  #runOf(id: string, lane: string, signal: AbortSignal): SendingRun {
    return {
      signal,
      turn: async () => {
        const endTurn = await this.#turns.take(lane, signal)
        this.#change(id, { state: 'delivering' })
        return endTurn
      },
      // A delivery that follows an acknowledgement is the copy of a duplicate fault.
      onProgress: (deliveries) => {
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
