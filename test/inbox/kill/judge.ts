import type { Run } from './runs.ts'

/** A moment in the life of a process. */
export interface Moment {
  readonly process: string
  /** The time in ms since the epoch. */
  readonly at: number
}

/** The evidence of a run in which processes were killed. */
export interface KillEvidence {
  /** The keys of the events that were acknowledged. */
  readonly acknowledged: ReadonlySet<string>
  /** The handlers of each event, in their order. */
  readonly handlers: readonly string[]
  readonly runs: readonly Run[]
  /** The moments just before a process got the signal. */
  readonly kills: readonly Moment[]
  /** The moments at which a process had recorded everything that it had handled. */
  readonly settled?: readonly Moment[]
  readonly deadLetters: number
}

export interface KillReport {
  readonly kills: number
  readonly acknowledged: number
  /** Events that all handlers have handled. */
  readonly handled: number
  /** Acknowledged events that a handler has not handled. */
  readonly missing: number
  /** Runs that a kill cut off. */
  readonly cutOff: number
  /** Runs of a handler for an event that it had handled. */
  readonly doubled: number
  readonly deadLetters: number
  /** The reasons why the run does not show that acknowledged events are handled, and twice only after a kill. */
  readonly faults: readonly string[]
}

/** The fewest acknowledged events per kill: with fewer, hardly anything was at stake. */
const leastAcknowledged = 10

/** With so few kills, it can happen that none cuts off a handler. */
const shortRun = 3

/**
 * Maximum time between the end of a handler and the record of it, in ms. If its process is killed in between, the
 * handler runs again. On an idle machine it takes a few milliseconds.
 */
const recordMs = 1_000

/** Judges a run in which processes were killed. */
export function judge(evidence: KillEvidence): KillReport {
  const { acknowledged, handlers, runs, kills, deadLetters } = evidence
  const byHandler = new Map(handlers.map((handler) => [handler, runsByKey(runs, handler)]))
  const isDone = (key: string, handler: string) =>
    byHandler
      .get(handler)
      ?.get(key)
      ?.some(({ endedAt, failed }) => endedAt !== undefined && !failed) === true
  const missing = [...acknowledged].filter((key) => !handlers.every((handler) => isDone(key, handler)))
  const keys = new Set(runs.map(({ key }) => key))
  const explains = explainer(evidence, byHandler)
  const faults: string[] = []
  let doubled = 0
  for (const sameKey of [...byHandler.values()].flatMap((each) => [...each.values()])) {
    for (const [i, run] of sameKey.entries()) {
      const former = sameKey[i - 1]
      if (former === undefined) continue
      if (former.endedAt !== undefined && !former.failed) doubled++
      const problem = explains(former, run)
      if (problem !== undefined) faults.push(`${run.handler} of ${run.key} in ${run.process}: ${problem}`)
    }
  }
  const cutOff = runs.filter(({ endedAt }) => endedAt === undefined).length
  const numbers = {
    kills: kills.length,
    acknowledged: acknowledged.size,
    missing: missing.length,
    cutOff,
    doubled,
    deadLetters,
  }
  const handled = [...keys].filter((key) => handlers.every((handler) => isDone(key, handler))).length
  return { ...numbers, handled, faults: [...faultsOf(numbers), ...faults] }
}

function faultsOf({
  kills,
  acknowledged,
  missing,
  cutOff,
  deadLetters,
}: Omit<KillReport, 'handled' | 'faults'>): string[] {
  const faults: [holds: boolean, fault: string][] = [
    [acknowledged < kills * leastAcknowledged, `only ${acknowledged} events were acknowledged`],
    [missing > 0, `${missing} acknowledged events were not handled`],
    [kills > shortRun && cutOff === 0, 'no kill cut off a running handler'],
    [deadLetters > 0, `${deadLetters} dead letters`],
  ]
  return faults.flatMap(([holds, fault]) => (holds ? [fault] : []))
}

/** Returns a function that searches for the reason why a run followed another. It says why there is none. */
function explainer(
  { kills, settled = [], handlers }: KillEvidence,
  byHandler: ReadonlyMap<string, ReadonlyMap<string, readonly Run[]>>,
) {
  const killedAt = new Map(kills.map(({ process, at }) => [process, at]))
  const settledAt = new Map(settled.map(({ process, at }) => [process, at]))
  return (former: Run, run: Run): string | undefined => {
    const { endedAt, failed, process, handler, key } = former
    if (failed) return (endedAt as number) <= run.beganAt ? undefined : `${process} was still running it`
    const at = killedAt.get(process)
    if (at === undefined) return `${process} had run it, and was not killed`
    if (run.beganAt < at) return `${process} had run it, and was killed later`
    if (endedAt === undefined) return undefined
    if (endedAt < at - recordMs) return `${process} had handled it ${at - endedAt} ms before it was killed`
    if (endedAt < (settledAt.get(process) ?? 0)) return `${process} had recorded that it had handled it`
    // The end of a handler is recorded before the next one begins.
    const next = handlers[handlers.indexOf(handler) + 1]
    const nextRuns = next === undefined ? [] : (byHandler.get(next)?.get(key) ?? [])
    const hasGoneOn = nextRuns.some((each) => each.process === process && each.beganAt >= endedAt)
    return hasGoneOn ? `${process} had gone on to ${next} before it was killed` : undefined
  }
}

/** Returns the runs of a handler by key, in the order in which they began. */
function runsByKey(runs: readonly Run[], handler: string): Map<string, Run[]> {
  const byKey = new Map<string, Run[]>()
  for (const run of runs) {
    if (run.handler !== handler) continue
    const same = byKey.get(run.key)
    if (same === undefined) byKey.set(run.key, [run])
    else same.push(run)
  }
  for (const same of byKey.values()) same.sort((a, b) => a.beganAt - b.beganAt)
  return byKey
}

/** Writes a report in one line. */
export const reportText = ({
  kills,
  acknowledged,
  handled,
  missing,
  cutOff,
  doubled,
  deadLetters,
}: KillReport): string =>
  `${kills} kills: ${acknowledged} acknowledged, ${handled} handled, ${missing} missing; ${cutOff} runs cut off, ` +
  `${doubled} doubled, ${deadLetters} dead letters`
