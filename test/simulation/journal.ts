import type { HandlerFailure } from '../../src/inbox/reading.ts'
import type { DeliveryOutcome } from '../../src/receiver/delivery.ts'
import type { Scope, World } from './world.ts'

/** A run of a handler. */
export interface Run {
  readonly event: number
  readonly handler: string
  readonly attempt: number
  /** The name of the process. */
  readonly by: string
  readonly scope: Scope
  readonly startedAt: number
  endedAt?: number
  outcome?: 'done' | 'failed' | 'timed out'
}

/** The decision of a receiver about a delivery. */
export interface Decision {
  readonly event: number
  readonly by: string
  readonly at: number
  readonly outcome: DeliveryOutcome
  readonly isCorrupt: boolean
}

/** The life of a process. */
export interface Life {
  readonly name: string
  /** The handlers that its version has, by the events that they take. */
  readonly handlersFor: (type: string) => readonly string[]
  endedAt?: number
  end?: 'killed' | 'closed'
  /** The pauses, from when to when. */
  readonly pauses: { readonly from: number; readonly to: number }[]
  /** The events that it reported as unfinished when it closed. */
  readonly unfinished: Set<number>
}

/** Everything that happened in a run, in its order. */
export class Journal {
  readonly world: World
  readonly runs: Run[] = []
  readonly decisions: Decision[] = []
  /** The events for which the sender read a 200, and from when on. */
  readonly told = new Map<number, number>()
  readonly lives: Life[] = []
  /** The dead letters, with the messages of their failures. */
  readonly deadLetters = new Map<number, readonly string[]>()
  /** The deliveries that processes began to take. */
  readonly arrivals: Pick<Decision, 'event' | 'by' | 'at'>[] = []
  readonly storageFaults: { readonly name: string; readonly at: number }[] = []
  /** The jumps of clocks, in ms. */
  readonly jumps: number[] = []
  /** `true` once a receiver expects events. */
  expects = false
  /** The time from which the processes only close. */
  settledAt = Number.POSITIVE_INFINITY
  /** The events whose expectations are open then. */
  readonly expected = new Set<number>()
  /** The failure that ended the run early. */
  readonly violations: string[] = []
  readonly #lines: string[] = []

  constructor(world: World) {
    this.world = world
  }

  note(text: string): void {
    this.#lines.push(`${(this.world.now / 1_000).toFixed(3).padStart(9)} s  ${text}`)
  }

  /** The story of the run, a line a step. */
  get text(): string {
    return this.#lines.join('\n')
  }

  /** Remembers a dead letter, with the messages of its failures. */
  died(event: number, failures: readonly HandlerFailure[]): void {
    this.deadLetters.set(
      event,
      failures.map(({ message }) => message),
    )
  }

  life(name: string): Life {
    return this.lives.find((life) => life.name === name) as Life
  }
}
