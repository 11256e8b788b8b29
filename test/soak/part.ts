/** The lengths of the soak, from the command line. */
export interface SoakOptions {
  /** Kills for each durable inbox. */
  readonly kills: number
  /** The time for which memory and size are measured, in minutes. */
  readonly minutes: number
  /** Deliveries per second while they are measured, to each inbox. */
  readonly rate: number
  /** The inboxes that are measured. */
  readonly inboxes: readonly string[]
  /** Bodies that are fuzzed. */
  readonly bodies: number
  /** The number of the first one. */
  readonly from: number
  /** Seeds of the simulation. */
  readonly seeds: number
  /** The seed of every random number of the soak. */
  readonly seed: number
  /** `false`: the handlers of the kill run over Postgres write beside the inbox. */
  readonly transaction: boolean
}

/** A part of the soak: prints what it measured, and returns the reasons why it failed. */
export type Part = (options: SoakOptions) => Promise<readonly string[]>
