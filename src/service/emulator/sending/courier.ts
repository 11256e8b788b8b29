import { setTimeout as sleep } from 'node:timers/promises'
import type { Signer } from '../../../testing/signers.ts'
import type { Clock } from '../shared/clock.ts'
import { post } from './post.ts'
import { deliveryTimeoutMs, type Profile, retryDelay } from './profile.ts'
import { requestTo } from './request.ts'
import type { DeliveryRecord, Fault, WireFault } from './sending.ts'

export interface CourierOptions {
  /** @defaultValue 'documented' */
  readonly profile?: Profile
  /** @defaultValue 3_000 */
  readonly timeoutMs?: number
  /** Scales the delays between an event's deliveries, not `timeoutMs`. Default: 1. */
  readonly timeScale?: number
  /** @defaultValue the machine's clock */
  readonly clock?: Clock
}

/** How a delivery differs from the service's. */
export interface DeliverOptions {
  readonly sign?: Signer | undefined
  readonly fault?: WireFault | undefined
  /** Cuts the delivery off when it aborts. */
  readonly signal?: AbortSignal | undefined
}

/** How an event's deliveries differ from the service's. */
export interface SendOptions extends Omit<DeliverOptions, 'fault'> {
  /** Lets no further delivery start once it aborts. Default: `signal`. */
  readonly stop?: AbortSignal | undefined
  readonly fault?: EventFault | undefined
  /** Waits for the next delivery's turn. Resolves with a function that ends the turn. */
  readonly turn?: () => Promise<() => void>
  /** Called with the deliveries so far whenever another one follows. */
  readonly onProgress?: (deliveries: readonly DeliveryRecord[]) => void
}

/** A fault of a single event. The outbox applies `reorder` and `drop`. */
export type EventFault = Exclude<Fault, 'reorder' | 'drop'>

/**
 * Sends events as the service does. Both methods reject with `invalid_option` if `url` is not an http or https URL.
 * `send` also rejects if its signal aborts.
 */
export interface Courier {
  deliver(url: string, body: string, options?: DeliverOptions): Promise<DeliveryRecord>
  /** Delivers an event until it is acknowledged or given up. Resolves with all deliveries. */
  send(url: string, body: string, options?: SendOptions): Promise<readonly DeliveryRecord[]>
}

/** What the fault `delay` adds before the first delivery (ms). */
const addedDelayMs = 5_000

const immediateTurn = async () => () => {}

export function createCourier(options: CourierOptions = {}): Courier {
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
