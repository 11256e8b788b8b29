import type { EventOrder } from '../../../../src/inbox/inbox.ts'

/** Tells a process of the order run what to do. */
export interface OrderTask {
  /** The URL of Postgres. */
  readonly url: string
  readonly schema: string
  readonly order: EventOrder
  /** The file to which each handler appends a line when it begins. */
  readonly notes: string
  readonly leaseMs: number
  /** The seed of its random numbers. */
  readonly seed: number
}

/** The nth event of a media item. */
export interface Numbered {
  readonly mediaId: string
  readonly n: number
}

/** A delivery to make. */
export interface ToOrdered extends Numbered {
  readonly id: number
}
/** The answer to a delivery. */
export interface FromOrdered {
  readonly id: number
  readonly status: number
}
