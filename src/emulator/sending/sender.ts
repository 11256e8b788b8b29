import { setTimeout as sleep } from 'node:timers/promises'
import type { Signer } from '../../testing/signers.ts'
import type { Clock } from '../shared/clock.ts'
import { post } from './post.ts'
import { deliveryTimeoutMs, type Profile, retryDelay } from './profile.ts'
import { requestTo } from './request.ts'
import type { DeliveryRecord, Fault, WireFault } from './sending.ts'

/** The options of {@link createSender}. */
export interface SenderOptions {
  /**
   * The profile that sets the times of the retries.
   * @defaultValue 'documented'
   */
  readonly profile?: Profile
  /**
   * The time limit of a delivery, including its answer, in ms.
   * @defaultValue 3_000
   */
  readonly timeoutMs?: number
  /**
   * Multiplies the pauses between the deliveries of an event. `timeoutMs` does not change.
   * @defaultValue 1
   */
  readonly timeScale?: number
  /** @defaultValue the machine's clock */
  readonly clock?: Clock
}

/** The differences of a delivery from one of the service. */
export interface DeliverOptions {
  /**
   * Signs the delivery.
   * @defaultValue none
   */
  readonly sign?: Signer | undefined
  /** @defaultValue none */
  readonly fault?: WireFault | undefined
  /** Cuts the delivery off when it aborts. */
  readonly signal?: AbortSignal | undefined
}

/** The differences of an event's deliveries from those of the service. */
export interface SendOptions extends Omit<DeliverOptions, 'fault'> {
  /**
   * No delivery begins once it has aborted. A delivery in progress ends.
   * @defaultValue `signal`
   */
  readonly stop?: AbortSignal | undefined
  /** @defaultValue none */
  readonly fault?: EventFault | undefined
  /** Waits for permission to make the next delivery. Resolves with the function to call after the delivery. */
  readonly turn?: () => Promise<() => void>
  /** Called with the deliveries so far whenever another delivery follows. */
  readonly onProgress?: (deliveries: readonly DeliveryRecord[]) => void
}

/** A fault that concerns one event alone. `reorder` and `drop` are applied by the outbox. */
export type EventFault = Exclude<Fault, 'reorder' | 'drop'>

/**
 * Sends events as the service does. Both methods reject with `invalid_option` when `url` is not an http or https URL.
 * `send` also rejects when its signal aborts.
 */
export interface Sender {
  /** Makes one delivery. */
  deliver(url: string, body: string, options?: DeliverOptions): Promise<DeliveryRecord>
  /** Delivers an event until it is acknowledged or given up. Resolves with all deliveries. */
  send(url: string, body: string, options?: SendOptions): Promise<readonly DeliveryRecord[]>
}

/** The pause that the fault `delay` adds before the first delivery, in ms. */
const addedDelayMs = 5_000

const immediateTurn = async () => () => {}

/** Creates a sender. */
export function createSender(options: SenderOptions = {}): Sender {
  const { profile = 'documented', timeoutMs = deliveryTimeoutMs, timeScale = 1, clock } = options

  async function deliver(attempt: number, url: string, body: string, options: DeliverOptions): Promise<DeliveryRecord> {
    const { sign, fault, signal } = options
    return { attempt, ...(await post(await requestTo(url, body, sign), { timeoutMs, fault, signal, clock })) }
  }

  function withRetry(delivery: DeliveryRecord): DeliveryRecord {
    const delayMs = delivery.failure && retryDelay(profile, delivery.attempt, delivery.failure)
    return delayMs === undefined ? delivery : { ...delivery, retryInMs: delayMs * timeScale }
  }

  return {
    deliver: (url, body, options = {}) => deliver(1, url, body, options),

    async send(url, body, { fault, sign, signal, stop = signal, turn = immediateTurn, onProgress = () => {} } = {}) {
      const deliverInTurn = async (attempt: number, twice = false) => {
        const endTurn = await turn()
        const options = { sign, signal, fault: attempt === 1 ? wireFault(fault) : undefined }
        const once = () => deliver(attempt, url, body, options)
        const both = await Promise.all([once(), twice ? once() : undefined]).finally(endTurn)
        signal?.throwIfAborted()
        return both
      }

      const deliveries: DeliveryRecord[] = []
      if (fault === 'delay') await sleep(addedDelayMs * timeScale, undefined, { signal: stop })
      for (let attempt = 1; ; attempt++) {
        const [first, copy] = await deliverInTurn(attempt, attempt === 1 && fault === 'concurrent-duplicate')
        const delivery = stop?.aborted ? first : withRetry(first)
        deliveries.push(delivery, ...(copy === undefined ? [] : [asCopy(copy)]))
        if (delivery.retryInMs === undefined) break
        onProgress([...deliveries])
        await sleep(delivery.retryInMs, undefined, { signal: stop })
      }
      if (fault === 'duplicate' && deliveries.at(-1)?.failure === undefined && !stop?.aborted) {
        onProgress([...deliveries])
        const [copy] = await deliverInTurn(deliveries.length)
        deliveries.push(asCopy(copy))
      }
      return deliveries
    },
  }
}

const asCopy = (delivery: DeliveryRecord): DeliveryRecord => ({ ...delivery, copy: true })

const wireFault = (fault: EventFault | undefined): WireFault | undefined =>
  fault === 'corrupt-body' || fault === 'cut-connection' || fault === 'lost-answer' ? fault : undefined
