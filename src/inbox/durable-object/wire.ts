import { fromBase64, toBase64 } from '../../internal/base64.ts'
import { reviveEvent, reviveFailedAttempts } from '../engine/stored.ts'
import type { DeadLetter, EventRecord, KeysOptions, UnreadableDelivery } from '../reading.ts'
import type { KeysPage } from '../sql/dead-letters.ts'

// Wire form between the Worker and its objects: JSON, with bytes in base64.

export interface PageRange {
  readonly limit?: number
  readonly offset?: number
}

export interface KeysQuery extends KeysOptions {
  readonly after: KeysPage['next'] & {}
}

export type WireUnreadable = Omit<UnreadableDelivery, 'body'> & { readonly body: string }

export const packUnreadable = ({ body, ...unreadable }: UnreadableDelivery): WireUnreadable => ({
  ...unreadable,
  body: toBase64(body),
})

export const unpackUnreadable = ({ receivedAt, body, ...unreadable }: WireUnreadable): UnreadableDelivery => ({
  ...unreadable,
  receivedAt: new Date(receivedAt),
  body: fromBase64(body),
})

export const packDeadLetter = ({ unreadable, ...deadLetter }: DeadLetter) => ({
  ...deadLetter,
  ...(unreadable && { unreadable: packUnreadable(unreadable) }),
})

const times = ['receivedAt', 'dueAt', 'startedAt', 'endedAt', 'diedAt', 'beganAt', 'since']

/** Revives what an object has sent: an event, a dead letter or its key, an expectation or a pause. */
export function unpack<Item extends object>(wire: Item): Item {
  const { event, failedAttempts, unreadable } = wire as Partial<EventRecord> & { unreadable?: WireUnreadable }
  const dates = Object.entries(wire).flatMap(([name, time]) => (times.includes(name) ? [[name, new Date(time)]] : []))
  return {
    ...wire,
    ...Object.fromEntries(dates),
    ...(event && { event: reviveEvent(event) }),
    ...(failedAttempts && { failedAttempts: reviveFailedAttempts(failedAttempts) }),
    ...(unreadable && { unreadable: unpackUnreadable(unreadable) }),
  }
}
