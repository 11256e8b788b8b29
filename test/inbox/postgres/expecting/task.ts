/** Tells a process what to do. */
export interface ExpectingTask {
  /** The URL of Postgres. */
  readonly url: string
  /** The time until a deadline, in ms. */
  readonly withinMs: number
}

/** An event to accept. */
export interface ToExpecting {
  readonly type: 'file.received' | 'encoding.finished'
  readonly mediaId: string
}

/** `ready`, or an event that was acknowledged. */
export type FromExpecting = 'ready' | ToExpecting
