import type { Payload } from '../../testing/payload.ts'
import type { SigningOptions } from './signing.ts'

/** The names of the faults. {@link Fault} describes them. */
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
 * A fault that the emulator applies to each event for a webhook, once per event:
 *
 * - `duplicate`: the event is delivered again after it was acknowledged.
 * - `concurrent-duplicate`: the event is delivered twice at the same instant.
 * - `reorder`: the event is held back until the webhook's next event has been delivered, or for 10 s.
 * - `delay`: the first delivery is 5 s late.
 * - `drop`: the event is never sent.
 * - `corrupt-body`: the body of the first delivery is corrupted after it was signed, so it is not JSON.
 * - `cut-connection`: the connection of the first delivery is cut in the middle of the body.
 * - `lost-answer`: the first delivery is received and answered, but the connection is cut before the answer is read.
 */
export type Fault = (typeof faults)[number]

/** A fault that affects the bytes of a single delivery. */
export type WireFault = Extract<Fault, 'corrupt-body' | 'cut-connection' | 'lost-answer'>

/** The differences of sending to a webhook from the service's own behaviour. `{}` means none. */
export interface Behaviour {
  /**
   * The wire format of the body.
   * @defaultValue 'flat'
   */
  readonly format?: 'flat' | 'envelope'
  /**
   * The way deliveries are signed.
   * @defaultValue none, because the service was observed to sign nothing
   */
  readonly sign?: SigningOptions
  /**
   * The fault that is applied to each event.
   * @defaultValue none
   */
  readonly fault?: Fault
}

/** The names of the states of a sending. {@link SendingState} describes them. */
export const sendingStates = ['waiting', 'delivering', 'retrying', 'acknowledged', 'failed', 'dropped'] as const

/**
 * The state of a sending:
 *
 * - `waiting`: the event waits for its turn, or a fault holds it back.
 * - `delivering`: a delivery is in progress.
 * - `retrying`: a delivery was not acknowledged, and another one follows.
 * - `acknowledged`: a delivery was acknowledged.
 * - `failed`: the event was given up.
 * - `dropped`: the fault `drop` kept the event from being sent.
 */
export type SendingState = (typeof sendingStates)[number]

/** The sending of an event to one webhook, at one moment. An event has a sending for each subscribed webhook. */
export interface Sending {
  readonly id: string
  /** The id of the webhook that gets it. */
  readonly webhookId: string
  /** The webhook's URL at the time of sending. */
  readonly url: string
  /** The payload, before a fault changes it. */
  readonly payload: Payload
  /** The body of its deliveries, if a user edited it. */
  readonly body?: string
  /** The fault, format and signing of its deliveries. */
  readonly behaviour: Behaviour
  /** The time at which the event was emitted or repeated. */
  readonly createdAt: Date
  /** Its progress. */
  readonly state: SendingState
  /** The deliveries made so far, in order. */
  readonly deliveries: readonly DeliveryRecord[]
}

/** A delivery: the request, the answer or failure, and the retry that follows. */
export interface DeliveryRecord {
  /** The number of the attempt, from 1. */
  readonly attempt: number
  /** `true` for the copy that a duplicate fault adds. Its answer has no effect. */
  readonly copy?: true
  /** The request as it was sent. */
  readonly request: SentRequest
  /** The time at which it was sent. */
  readonly startedAt: Date
  /** The time from its sending to its answer or failure, in ms. */
  readonly durationMs: number
  /** The receiver's answer. Absent when there was none. */
  readonly answer?: Answer
  /** Absent when the delivery was acknowledged. */
  readonly failure?: DeliveryFailure
  /** The pause before the next delivery, in ms. Absent when no delivery follows. */
  readonly retryInMs?: number
}

/** The request of a delivery as it was sent, with the effect of faults. */
export interface SentRequest {
  /** The URL without `user:password@`, which is sent in the Authorization header. */
  readonly url: string
  /** The header fields by name, as the service spells them. */
  readonly headers: Readonly<Record<string, string>>
  /** The body as text. */
  readonly body: string
}

/** The receiver's answer to a delivery. */
export interface Answer {
  /** The HTTP status. */
  readonly status: number
  /** The header fields by name, in lower case. Fields after the first 2,048 characters are left out. */
  readonly headers: Readonly<Record<string, string>>
  /** The first 1,024 characters of the body. */
  readonly body: string
}

/** The reason why a delivery was not acknowledged. */
export interface DeliveryFailure {
  /** `status`: the answer was not 2xx. `timeout`: no complete answer in time. `connection`: the connection failed. */
  readonly reason: 'status' | 'timeout' | 'connection'
  /** A sentence that says what went wrong. */
  readonly message: string
}
