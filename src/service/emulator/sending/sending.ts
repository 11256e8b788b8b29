import type { Payload } from '../../../testing/payload.ts'
import type { SigningOptions } from './signing.ts'

export const faults = [
  'duplicate',
  'concurrent-duplicate',
  'reorder',
  'delay',
  'drop',
  'corrupt-body',
  'cut-connection',
  'lost-answer',
] as const

/**
 * A fault, applied once to each event for a webhook:
 *
 * - `duplicate`: delivers the event again after it was acknowledged.
 * - `concurrent-duplicate`: delivers the event twice at once.
 * - `reorder`: holds the event back until the webhook's next event has been delivered, or for 10 s.
 * - `delay`: makes the first delivery 5 s late.
 * - `drop`: never sends the event.
 * - `corrupt-body`: corrupts the first delivery's body after it was signed, so it is not JSON.
 * - `cut-connection`: cuts the first delivery's connection in the middle of the body.
 * - `lost-answer`: cuts the first delivery's connection after the receiver has answered, before the answer is read.
 */
export type Fault = (typeof faults)[number]

/** A fault in the bytes of a single delivery. */
export type WireFault = Extract<Fault, 'corrupt-body' | 'cut-connection' | 'lost-answer'>

/** How sending to a webhook differs from the service's own behaviour. `{}` for not at all. */
export interface Behaviour {
  /**
   * The wire format of the body.
   * @defaultValue 'flat'
   */
  readonly format?: 'flat' | 'envelope'
  /**
   * How deliveries are signed.
   * @defaultValue none, because the service was observed to sign nothing
   */
  readonly sign?: SigningOptions
  /** @defaultValue none */
  readonly fault?: Fault
}

export const sendingStates = ['waiting', 'delivering', 'retrying', 'acknowledged', 'failed', 'dropped'] as const

/**
 * The state of a sending:
 *
 * - `waiting`: waits for its turn, or a fault holds the event back.
 * - `delivering`: a delivery is in progress.
 * - `retrying`: the last delivery was not acknowledged; another one follows.
 * - `acknowledged`: the receiver acknowledged a delivery.
 * - `failed`: given up.
 * - `dropped`: never sent, because of the fault `drop`.
 */
export type SendingState = (typeof sendingStates)[number]

/** A snapshot of sending an event to one webhook. An event has one sending per subscribed webhook. */
export interface Sending {
  readonly id: string
  /** The receiving webhook's id. */
  readonly webhookId: string
  /** The webhook's URL when the sending was created. */
  readonly url: string
  /** The payload, before any fault. */
  readonly payload: Payload
  /** The body, if a user edited it. */
  readonly body?: string
  /** The format, signing and fault of its deliveries. */
  readonly behaviour: Behaviour
  /** When the event was emitted or repeated. */
  readonly createdAt: Date
  readonly state: SendingState
  /** The deliveries so far, in order. */
  readonly deliveries: readonly DeliveryRecord[]
}

/** A delivery: request, answer or failure, and the retry that follows. */
export interface DeliveryRecord {
  /** The attempt, from 1. */
  readonly attempt: number
  /** `true` for the copy made by a duplicate fault. Its answer has no effect. */
  readonly copy?: true
  readonly request: SentRequest
  readonly startedAt: Date
  /** Time from sending to answer or failure, in ms. */
  readonly durationMs: number
  readonly answer?: Answer
  /** Absent if the delivery was acknowledged. */
  readonly failure?: DeliveryFailure
  /** Delay before the next delivery, in ms. Absent if none follows. */
  readonly retryInMs?: number
}

/** A delivery's request as sent, faults included. */
export interface SentRequest {
  /** The URL without `user:password@`, which goes into the Authorization header. */
  readonly url: string
  /** Headers by name, spelt like the service's. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** The receiver's answer. */
export interface Answer {
  readonly status: number
  /** Headers by lower-case name, cut after 2,048 characters. */
  readonly headers: Readonly<Record<string, string>>
  /** The first 1,024 characters of the body. */
  readonly body: string
}

/** Why a delivery was not acknowledged. */
export interface DeliveryFailure {
  /** `status`: the answer was not 2xx. `timeout`: no complete answer in time. `connection`: the connection failed. */
  readonly reason: 'status' | 'timeout' | 'connection'
  /** What went wrong, as a sentence. */
  readonly message: string
}
