/** Tells a process of the kill run what to do. */
export interface KillTask {
  /** The URL of Postgres. */
  readonly url: string
  /** Unique among the processes of the run. */
  readonly name: string
  /** The process that was killed and that this one replaces, and so makes its last deliveries again. */
  readonly predecessor: string | undefined
  /** The folder for the files of {@link openEvidence}. */
  readonly folder: string
  readonly leaseMs: number
  /** The seed of its random numbers. */
  readonly seed: number
  /** `false`: handlers write with the pool, beside the inbox. */
  readonly transaction: boolean
}

/** `started`: it has acknowledged its first event. */
export type FromKilled = 'started'
/** `drain`: make no more deliveries, and handle what is left. */
export type ToKilled = 'drain'

/** The event key of a process's nth event. */
export const keyOf = (name: string, n: number) => `${name}/${n}`

/** Returns the n of a process's own key, `undefined` for another's. */
export const numberOf = (key: string, name: string): number | undefined =>
  key.startsWith(`${name}/`) ? Number(key.slice(name.length + 1)) : undefined
