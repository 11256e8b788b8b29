import type { Payload } from '../../testing/payload.ts'
import type { SigningOptions } from './signing.ts'

/**
 * What can be made to go wrong with an event on its way to a webhook, once per event:
 *
 * - `duplicate`: after it was acknowledged it is delivered once more.
 * - `concurrent-duplicate`: it is delivered twice at the same instant.
 * - `reorder`: it is held back until the next event for the webhook has been delivered, or none has come for 10 s.
 * - `delay`: its first delivery is late by 5 s.
 * - `drop`: it is never sent.
 * - `corrupt-body`: its first delivery has a body that is no JSON. It was sound when it was signed.
 * - `cut-connection`: its first delivery breaks off in the middle of the body.
 * - `lost-answer`: its first delivery is received and answered, but the connection is cut before the answer is read.
 */
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

/** One of {@link faults}. */
export type Fault = (typeof faults)[number]

/** A fault of the connection that a delivery is made on. */
export type WireFault = Extract<Fault, 'corrupt-body' | 'cut-connection' | 'lost-answer'>

/** How events are sent to a webhook, where that is not what the service does. */
export interface Behaviour {
  /** @defaultValue 'flat' */
  readonly format?: 'flat' | 'envelope'
  /** @defaultValue none: the service was seen to sign nothing */
  readonly sign?: SigningOptions
  /** @defaultValue none */
  readonly fault?: Fault
}

/**
 * - `waiting`: for its turn, or held back by a fault.
 * - `delivering`: a delivery is on its way.
 * - `retrying`: a delivery was not acknowledged, and another follows.
 * - `acknowledged`, `failed` (given up), `dropped` (by a fault): it is over.
 */
export const sendingStates = ['waiting', 'delivering', 'retrying', 'acknowledged', 'failed', 'dropped'] as const

/** One of {@link sendingStates}. */
export type SendingState = (typeof sendingStates)[number]

/** An event on its way to a webhook, as it is at the moment: an event has one for each webhook that is subscribed. */
export interface Sending {
  readonly id: string
  readonly webhookId: string
  /** Of the webhook, when the event was sent. */
  readonly url: string
  readonly payload: Payload
  readonly behaviour: Behaviour
  readonly createdAt: Date
  readonly state: SendingState
  /** Each delivery that was made, the first one first. */
  readonly deliveries: readonly DeliveryRecord[]
}

/** One delivery: what was sent, what came back, and what follows. */
export interface DeliveryRecord {
  /** 1 for the first delivery of an event. */
  readonly attempt: number
  /** Whether it is the copy that the fault `duplicate` or `concurrent-duplicate` adds; nothing follows from its answer. */
  readonly copy?: true
  readonly request: SentRequest
  readonly startedAt: Date
  readonly durationMs: number
  readonly answer?: Answer
  /** Absent when it was acknowledged. */
  readonly failure?: DeliveryFailure
  /** Present when the event is sent again, after so many ms. */
  readonly retryInMs?: number
}

/** What was sent in a delivery, after the faults of the connection. */
export interface SentRequest {
  /** Without `user:password@`, which went into the Authorization header. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** What the receiver answered. */
export interface Answer {
  readonly status: number
  /** Its first 1,024 characters. */
  readonly body: string
}

/** Why a delivery was not acknowledged. */
export interface DeliveryFailure {
  /** `status`: the answer was not 2xx. `timeout`: no whole answer in time. `connection`: none could be had. */
  readonly reason: 'status' | 'timeout' | 'connection'
  readonly message: string
}
