/** The inboxes that are measured. */
export const measured = ['memory', 'sqlite', 'bullmq', 'postgres'] as const
export type MeasuredInbox = (typeof measured)[number]

/** Tells a process what to measure. */
export interface MemoryTask {
  readonly inbox: MeasuredInbox
  /** The path of the file, or the URL of the server. */
  readonly place: string
  /** Deliveries per second. */
  readonly rate: number
  readonly durationMs: number
  /** The time for which event keys are remembered, in ms. */
  readonly ttlMs: number
  readonly seed: number
}

/** One measurement, after a garbage collection. Sizes are in bytes. */
export interface Sample {
  readonly minute: number
  /** Events that were accepted until now. */
  readonly events: number
  /** The heap in use, with the memory of buffers. */
  readonly heap: number
  /** The memory of the process. */
  readonly rss: number
  /** The file, the database, or the memory of Redis. */
  readonly size?: number
}

/** The counts of a run, once everything was handled. */
export interface Totals {
  readonly accepted: number
  readonly duplicates: number
  readonly rejected: number
  readonly handled: number
}

export type FromMeasured = { readonly sample: Sample } | { readonly totals: Totals }
