import { begin, ends } from './expected.ts'
import type { Decision, Journal, Run } from './journal.ts'
import { overdueNumber } from './numbers.ts'
import { isDurable, type Plan, type PlannedEvent, ttlMs } from './plan.ts'

/** The part of a run that one storage has seen: the storage of a process, or the one that all share. */
interface Seen {
  readonly arrivals: Journal['arrivals']
  /** The answers about events that the storage has kept. */
  readonly kept: readonly Decision[]
  readonly runs: readonly Run[]
  /** `false` if it ended with its process, and its expectations with it. */
  readonly lasts: boolean
}

/** More than the maximum pause of a process and its restart, in ms. */
const maxDelayMs = 20_000

/** The time after a deadline that an inbox may take to store that it has passed, when nothing fails, in ms. */
const lateMs = 10_000

/** Finds the expectations that were lost, that were reported wrongly, and that no time would end. */
export function* judgeExpected(
  plan: Plan,
  journal: Journal,
  written: ReadonlyMap<string, number> | undefined,
): Iterable<string> {
  if (plan.expectation === undefined || !journal.expects) return
  for (const seen of storages(plan, journal))
    for (const event of plan.events.filter(({ type }) => type === begin)) {
      yield* wronglyReported(event, plan, journal, seen)
      yield* notReported(event, plan, journal, seen, written)
    }
  // A clock that goes back by a month puts off what is stored by a month.
  const isPutOff = journal.jumps.some((ms) => ms < -ttlMs)
  for (const number of isPutOff ? [] : journal.expected) yield `the expectation of event ${number} stays open`
}

function storages({ setup }: Plan, { arrivals, decisions, runs, lives, settledAt }: Journal): readonly Seen[] {
  const kept = decisions.filter(({ outcome }) => outcome === 'accepted' || outcome === 'duplicate')
  if (isDurable(setup)) return [{ arrivals, kept, runs, lasts: true }]
  return lives.map(({ name, endedAt = settledAt }) => ({
    arrivals: arrivals.filter(({ by }) => by === name),
    kept: kept.filter(({ by }) => by === name),
    runs: runs.filter(({ by }) => by === name),
    lasts: endedAt >= settledAt,
  }))
}

/** The reports before the deadline, and those of an expectation that was ended before. */
function* wronglyReported(event: PlannedEvent, plan: Plan, journal: Journal, seen: Seen): Iterable<string> {
  const runs = seen.runs.filter((run) => run.event === overdueNumber(event.number))
  if (runs.length === 0) return
  const [arrival] = seen.arrivals.filter((each) => each.event === event.number)
  // The clocks of the processes show whole milliseconds.
  const dueAt = (arrival?.at ?? Number.POSITIVE_INFINITY) + withinMs(plan) - jumpedMs(journal) - 1
  for (const { by, startedAt } of runs)
    if (startedAt < dueAt) yield `${by} reported the expectation of event ${event.number} before its deadline`
  const isEnd = isEndOf(event, plan)
  const end = seen.kept.find((each) => each.at < dueAt && isEnd(each.event))
  if (end) yield `the expectation of event ${event.number} was reported, and event ${end.event} had ended it in time`
}

/** An acknowledged event without an end that was not reported. */
function* notReported(
  event: PlannedEvent,
  plan: Plan,
  journal: Journal,
  { lasts, kept, arrivals, runs }: Seen,
  written: ReadonlyMap<string, number> | undefined,
): Iterable<string> {
  const overdue = overdueNumber(event.number)
  const answer = kept.find((each) => each.event === event.number)
  if (answer === undefined || !lasts || journal.expected.has(event.number) || journal.deadLetters.has(overdue)) return
  if (runs.some((run) => run.event === overdue && run.outcome === 'done') || written?.has(`${overdue} overdue`)) return
  // An end that comes after the deadline counts while no process has stored that it has passed.
  const quietAt = plan.isCalm ? 0 : plan.faultsUntil + maxDelayMs
  const storedAt = Math.max(answer.at + withinMs(plan) + jumpedMs(journal), quietAt) + lateMs
  const isEnd = isEndOf(event, plan)
  if (arrivals.some((arrival) => arrival.at <= storedAt && isEnd(arrival.event))) return
  yield `event ${event.number} was acknowledged, and its expectation was neither ended nor reported`
}

const withinMs = ({ expectation }: Plan): number => expectation?.withinMs as number

/** Maximum shift of a deadline by the jumps of the clock, in ms. */
const jumpedMs = ({ jumps }: Journal): number => jumps.reduce((sum, ms) => sum + Math.abs(ms), 0)

/** Returns a function that returns `true` for the events that end what an event begins: those that are not older. */
const isEndOf =
  ({ number: begun, mediaId }: PlannedEvent, { events }: Plan) =>
  (number: number): boolean => {
    const event = events[number]
    return event !== undefined && number > begun && event.mediaId === mediaId && ends.includes(event.type)
  }
