import { randomUUID } from 'node:crypto'
import { type Clock, toDate } from '../shared/clock.ts'
import type { RecentItems } from '../shared/recent-items.ts'
import type { Profile } from './profile.ts'
import type { DeliveryRecord, Sending } from './sending.ts'
import { SendingTurns } from './turns.ts'

/** Connects a sending's deliveries with its record. */
export interface LiveSending {
  /** Cuts off a delivery in progress. */
  readonly signal: AbortSignal
  /** Lets no further delivery start. */
  readonly stop: AbortSignal
  /** Waits for a delivery's turn. Resolves with a function that ends the turn. */
  readonly turn: () => Promise<() => void>
  /** Records the deliveries so far. Called when another one follows. */
  readonly onProgress: (deliveries: readonly DeliveryRecord[]) => void
}

interface UnfinishedSending {
  readonly webhookId: string
  readonly cut: AbortController
  readonly stop: AbortController
}

export interface LiveSendingsOptions {
  readonly records: RecentItems<Sending>
  readonly clock: Clock
  readonly profile: Profile
  /** Called when the webhook counts as triggered, test deliveries included. */
  readonly triggered: (sending: Sending) => void
  /** Called with each recorded delivery, test deliveries included. */
  readonly delivered: (delivery: DeliveryRecord, sending: Sending) => void
}

/** Maximum number of concurrent deliveries. Sendings that wait for a retry don't count. */
const maxConcurrent = 64

/** Runs sendings and keeps their records up to date. */
export class LiveSendings {
  readonly #records: RecentItems<Sending>
  readonly #clock: Clock
  readonly #profile: Profile
  readonly #triggered: LiveSendingsOptions['triggered']
  readonly #delivered: LiveSendingsOptions['delivered']
  readonly #turns = new SendingTurns(maxConcurrent)
  readonly #unfinished = new Set<UnfinishedSending>()

  constructor({ records, clock, profile, triggered, delivered }: LiveSendingsOptions) {
    this.#records = records
    this.#clock = clock
    this.#profile = profile
    this.#triggered = triggered
    this.#delivered = delivered
  }

  create(
    fields: Pick<Sending, 'webhookId' | 'url' | 'payload' | 'body' | 'behaviour'>,
    state: 'waiting' | 'dropped' = 'waiting',
  ): Sending {
    const sending = { id: randomUUID(), ...fields, createdAt: toDate(this.#clock()), state, deliveries: [] }
    this.#records.put(sending)
    return sending
  }

  /** @param queue where its deliveries wait for their turn */
  async run(
    created: Sending,
    queue: string,
    deliver: (live: LiveSending) => Promise<readonly DeliveryRecord[]>,
  ): Promise<Sending> {
    const { id, webhookId } = created
    const unfinished = { webhookId, cut: new AbortController(), stop: new AbortController() }
    const deliveriesSoFar = (error: unknown) => {
      if (!unfinished.stop.signal.aborted) throw error
      return withoutRetry((this.#records.get(id) as Sending).deliveries)
    }
    this.#unfinished.add(unfinished)
    if (this.#profile === 'documented') this.#triggered(created)
    try {
      const deliveries = await deliver(this.#makeLive(id, queue, unfinished)).catch(deliveriesSoFar)
      const sending = this.#change(id, { deliveries, state: isAcknowledged(deliveries) ? 'acknowledged' : 'failed' })
      if (this.#profile === 'observed' && sending.state === 'acknowledged') this.#triggered(sending)
      return sending
    } finally {
      this.#unfinished.delete(unfinished)
    }
  }

  /** Gives up all unfinished sendings and cuts off deliveries in progress. */
  abort(): void {
    for (const { cut, stop } of this.#unfinished) {
      cut.abort()
      stop.abort()
    }
  }

  /** Gives up a webhook's unfinished sendings. Deliveries in progress finish. */
  stop(webhookId: string): void {
    for (const each of this.#unfinished) if (each.webhookId === webhookId) each.stop.abort()
  }

  #makeLive(id: string, queue: string, { cut, stop }: UnfinishedSending): LiveSending {
    return {
      signal: cut.signal,
      stop: stop.signal,
      turn: async () => {
        const endTurn = await this.#turns.take(queue, stop.signal)
        this.#change(id, { state: 'delivering' })
        return endTurn
      },
      // A delivery after an acknowledgement is a duplicate fault's copy.
      onProgress: (deliveries) => {
        this.#change(id, { deliveries, state: isAcknowledged(deliveries) ? 'waiting' : 'retrying' })
      },
    }
  }

  #change(id: string, fields: Partial<Pick<Sending, 'state' | 'deliveries'>>): Sending {
    const before = this.#records.get(id) as Sending
    const sending = { ...before, ...fields }
    this.#records.put(sending)
    for (const delivery of sending.deliveries.slice(before.deliveries.length)) this.#delivered(delivery, sending)
    return sending
  }
}

/** Removes the retry announced after the last delivery. */
const withoutRetry = (deliveries: readonly DeliveryRecord[]): readonly DeliveryRecord[] =>
  deliveries.map(({ retryInMs, ...delivery }, index) =>
    retryInMs === undefined || index === deliveries.length - 1 ? delivery : { ...delivery, retryInMs },
  )

const isAcknowledged = (deliveries: readonly DeliveryRecord[]): boolean =>
  deliveries.some(({ failure, copy }) => failure === undefined && !copy)
