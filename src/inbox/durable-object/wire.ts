import { fromBase64, toBase64 } from '../../internal/base64.ts'
import { reviveEvent, reviveFailedAttempts } from '../engine/stored.ts'
import type { DeadLetter, EventRecord, KeysOptions, OpenExpectation, UnreadableDelivery } from '../reading.ts'
import type { KeysPage } from '../sql/dead-letters.ts'
import type { PlacedPage } from '../sql/events.ts'

// Wire form between the Worker and its objects: JSON, with bytes in base64.

export interface PageRange {
  readonly limit?: number
  readonly offset?: number
}

export interface KeysQuery extends KeysOptions {
  readonly after: KeysPage['next'] & {}
}

/** A dead letter as JSON. */
export type WireDeadLetter = Omit<DeadLetter, 'unreadable'> & { readonly unreadable?: WireUnreadable | undefined }

export const packDeadLetter = ({ unreadable, ...deadLetter }: DeadLetter): WireDeadLetter => ({
  ...deadLetter,
  ...(unreadable && { unreadable: packUnreadable(unreadable) }),
})

export function unpackDeadLetter({ event, unreadable, failedAttempts, ...rest }: WireDeadLetter): DeadLetter {
  return {
    ...rest,
    ...(event && { event: reviveEvent(event) }),
    receivedAt: new Date(rest.receivedAt),
    ...(unreadable && { unreadable: unpackUnreadable(unreadable) }),
    ...(failedAttempts && { failedAttempts: reviveFailedAttempts(failedAttempts) }),
    diedAt: new Date(rest.diedAt),
  } as DeadLetter
}

export type WireUnreadable = Omit<UnreadableDelivery, 'receivedAt' | 'body'> & Record<'receivedAt' | 'body', string>

export const packUnreadable = ({ receivedAt, body, ...unreadable }: UnreadableDelivery): WireUnreadable => ({
  ...unreadable,
  receivedAt: receivedAt.toISOString(),
  body: toBase64(body),
})

export const unpackUnreadable = ({ receivedAt, body, ...unreadable }: WireUnreadable): UnreadableDelivery => ({
  ...unreadable,
  receivedAt: new Date(receivedAt),
  body: fromBase64(body),
})

export function unpackRecord({
  event,
  receivedAt,
  failedAttempts,
  dueAt,
  startedAt,
  endedAt,
  ...record
}: EventRecord): EventRecord {
  return {
    ...record,
    ...(event !== undefined && { event: reviveEvent(event) }),
    receivedAt: new Date(receivedAt),
    failedAttempts: reviveFailedAttempts(failedAttempts),
    ...(dueAt !== undefined && { dueAt: new Date(dueAt) }),
    ...(startedAt !== undefined && { startedAt: new Date(startedAt) }),
    ...(endedAt !== undefined && { endedAt: new Date(endedAt) }),
  }
}

export const unpackExpectation = ({ beganAt, dueAt, ...open }: OpenExpectation): OpenExpectation => ({
  ...open,
  beganAt: new Date(beganAt),
  dueAt: new Date(dueAt),
})

export const unpackPage = ({ found, ...page }: PlacedPage): PlacedPage => ({
  ...page,
  found: found.map(({ id, record }) => ({ id, record: unpackRecord(record) })),
})
