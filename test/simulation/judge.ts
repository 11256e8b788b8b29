import { maxCrashes } from '../../src/inbox/engine/attempts.ts'
import { requestsEndWork } from '../../src/internal/requests.ts'
import type { Decision, Journal, Life, Run } from './journal.ts'
import { judgeExpected } from './judge-expected.ts'
import { isOverdue, overdueNumber, sentNumber } from './numbers.ts'
import { isDurable, type Plan, type PlannedEvent, ttlMs } from './plan.ts'
import { writers } from './receiver.ts'
import type { Storage } from './storage.ts'

/** The number of writes of each transaction, by what it wrote. */
type Written = ReadonlyMap<string, number>

/** Finds everything in a run that breaks a promise of the receiver. */
export async function judge(plan: Plan, journal: Journal, storage: Storage): Promise<void> {
  const written = await storage.written?.()
  const findings = [
    ...plan.events.flatMap((event) => [
      ...lost(event, plan, journal, written),
      ...handledTwice(event.number, plan, journal),
      ...handledTwice(overdueNumber(event.number), plan, journal),
    ]),
    ...judgeExpected(plan, journal, written),
    ...writtenTwice(journal, written),
    ...outOfOrder(plan, journal),
    ...overtaken(plan, journal),
    ...untrue(plan, journal),
    ...wronglyDead(plan, journal),
    ...(await storage.leftOver()),
  ]
  journal.violations.push(...findings)
}

/** The events that the sender was told are safe, and that are neither handled nor dead. */
function* lost(
  { number, type }: PlannedEvent,
  { setup }: Plan,
  journal: Journal,
  written: Written | undefined,
): Iterable<string> {
  if (!journal.told.has(number) || journal.deadLetters.has(number)) return
  const decisions = journal.decisions.filter(({ event, outcome }) => event === number && outcome !== 'malformed')
  if (decisions.every(({ outcome }) => outcome === 'ignored')) return
  const mayBeLost = (by: string) => {
    const life = journal.life(by)
    return !isDurable(setup) && (life.end === 'killed' || life.unfinished.has(number))
  }
  if (decisions.some(({ outcome, by }) => outcome === 'accepted' && mayBeLost(by))) return
  const done = new Set(
    journal.runs.filter((run) => run.event === number && run.outcome === 'done').map((run) => run.handler),
  )
  // The version that finished it decides which handlers had to run.
  const isHandled = journal.lives.some(({ handlersFor }) => {
    const handlers = handlersFor(type)
    // A transaction whose answer was lost is committed, and its handler has failed anyway.
    return handlers.length > 0 && handlers.every((handler) => done.has(handler) || written?.has(`${number} ${handler}`))
  })
  if (!isHandled) yield `event ${number} was acknowledged, and is neither handled nor a dead letter`
}

/** The runs of a handler that succeeded although it had before, without a crash or a lost lease in between. */
function* handledTwice(number: number, plan: Plan, journal: Journal): Iterable<string> {
  const succeeded = journal.runs.filter(({ event, outcome }) => event === number && outcome === 'done')
  for (const [index, run] of succeeded.entries()) {
    const before = succeeded.slice(0, index).findLast(({ handler }) => handler === run.handler)
    if (before !== undefined && !mayRepeat(before, run, plan, journal))
      yield `${run.handler} of event ${number} succeeded twice, in ${before.by} and in ${run.by}`
  }
}

function mayRepeat(before: Run, again: Run, { setup, ack, leaseMs }: Plan, journal: Journal): boolean {
  const life = journal.life(before.by)
  // On Workers the attempt ends with its request.
  if (requestsEndWork && before.scope.endsAt <= again.startedAt) return true
  const hasEnded = life.endedAt !== undefined && life.endedAt <= again.startedAt && life.name !== again.by
  if (hasEnded && (life.end === 'killed' || life.unfinished.has(before.event))) return true
  if (setup === 'sqlite') return hasForgotten(journal)
  // A process of its own memory has forgotten it when it has ended.
  if (setup === 'memory') return hasEnded
  const isLost = [life, journal.life(again.by)].some((each) =>
    hasLostLease(each, before.startedAt - leaseMs, again.startedAt, leaseMs, journal),
  )
  // With `ack: 'handled'` any process has forgotten that another handler had failed.
  return isLost || (ack === 'handled' && hasEnded)
}

/** Returns true if a clock jumped past the time for which a file remembers keys. */
const hasForgotten = ({ jumps }: Journal): boolean => jumps.some((ms) => Math.abs(ms) > ttlMs)

/** Returns true if the storage failed, or a process was paused, at any time of the run. */
const hasTrouble = ({ storageFaults, lives }: Journal): boolean =>
  storageFaults.length > 0 || lives.some(({ pauses }) => pauses.length > 0)

/** Returns true if a process may have lost a lease: it was paused, or could not reach the store. */
function hasLostLease({ pauses }: Life, from: number, to: number, leaseMs: number, journal: Journal): boolean {
  const overlaps = (pause: { from: number; to: number }) => pause.from < to && pause.to > from
  return pauses.some(overlaps) || journal.storageFaults.some(({ at }) => at > from - 2 * leaseMs && at < to)
}

/** The writes that transactions made more than once: no crash excuses that. */
function* writtenTwice(journal: Journal, written: Written | undefined): Iterable<string> {
  if (written === undefined) return
  for (const [what, times] of written)
    if (times !== 1 && !hasForgotten(journal)) yield `${what} was written ${times} times`
  for (const { event, handler, outcome } of journal.runs)
    if (writers.includes(handler) && outcome === 'done' && !written.has(`${event} ${handler}`))
      yield `event ${event} was handled, and its transaction is not in the database`
}

/** The events of a media item that a process began out of the order in which it had accepted them. */
function* outOfOrder({ setup, events, ack, handlerTimeoutMs }: Plan, journal: Journal): Iterable<string> {
  if (ack === 'handled' || hasForgotten(journal)) return
  // A process that loses its lease gets its events back in any order.
  if (setup === 'postgres' && hasTrouble(journal)) return
  for (const { name } of journal.lives) {
    const accepted = journal.decisions.filter(({ by, outcome }) => by === name && outcome === 'accepted')
    const place = new Map(accepted.map(({ event }, index) => [event, index]))
    const begun = new Map<string, Run>()
    const hasBegun = new Set<number>()
    for (const run of journal.runs) {
      const { mediaId, type } = events[sentNumber(run.event)] ?? {}
      if (mediaId === undefined || type === undefined || run.by !== name || run.attempt !== 1) continue
      // What is overdue has no place among the accepted events, but waits for those that run.
      if (!place.has(run.event) && !isOverdue(run.event)) continue
      const before = begun.get(mediaId)
      // An attempt that does not count has the same number as the next one, which is a retry.
      if (hasBegun.has(run.event) && before?.event !== run.event) continue
      hasBegun.add(run.event)
      const isLater = before !== undefined && Number(place.get(before.event)) > Number(place.get(run.event))
      const mayPass = ({ event }: Run) => overlapped(event, run.event, name, journal) || wasLeft(run, type, journal)
      if (isLater && !(setup === 'postgres' && mayPass(before)))
        yield `event ${run.event} began after event ${before.event}, which was accepted later`
      if (before !== undefined && isRunning(before, run.startedAt, handlerTimeoutMs))
        yield `event ${run.event} began while event ${before.event} of its media was running`
      begun.set(mediaId, run)
    }
  }
}

/** In a strict order, the events that began while an earlier one of their media item waited for its retry. */
function* overtaken({ setup, order, events, attempts }: Plan, journal: Journal): Iterable<string> {
  if (order === 'loose' || hasForgotten(journal) || (setup === 'postgres' && hasTrouble(journal))) return
  const place = new Map<number, number>()
  for (const { event, outcome } of journal.decisions)
    if (outcome === 'accepted' && !place.has(event)) place.set(event, place.size)
  const mediaOf = ({ event }: Run) => events[sentNumber(event)]?.mediaId
  for (const [index, run] of journal.runs.entries()) {
    const { event, outcome, endedAt = Number.POSITIVE_INFINITY, by } = run
    if (outcome !== 'failed' || run.attempt >= attempts) continue
    const later = journal.runs.slice(index + 1).filter((each) => mediaOf(each) === mediaOf(run))
    const again = later.findIndex((each) => each.event === event && each.startedAt >= endedAt)
    // Its process has lost it.
    if (again === -1) continue
    const passed = later.slice(0, again).find((each) => {
      const isBehind = Number(place.get(each.event)) > Number(place.get(event))
      const mayPass = setup === 'memory' ? each.by !== by : overlapped(each.event, event, each.by, journal)
      return isBehind && each.startedAt >= endedAt && !mayPass
    })
    if (passed !== undefined) yield `event ${passed.event} began while event ${event} before it waited for its retry`
  }
}

/**
 * Returns true if an event arrived before another one was answered: the database decides their order, not the answers.
 */
function overlapped(event: number, other: number, by: string, { arrivals, decisions }: Journal): boolean {
  const arrival = arrivals.find((each) => each.event === event && each.by === by)
  const answer = decisions.find((each) => each.event === other && each.by === by && each.outcome === 'accepted')
  return arrival !== undefined && answer !== undefined && arrival.at < answer.at
}

/**
 * Returns true if a process whose version lacks the handler had begun the event, and left it to the others. Later events
 * do not wait for it, as for a retry.
 */
const wasLeft = ({ event, handler, startedAt }: Run, type: string, { runs, lives }: Journal): boolean =>
  runs.some(
    (before) =>
      before.event === event &&
      before.startedAt < startedAt &&
      lives.some(({ name, handlersFor }) => name === before.by && !handlersFor(type).includes(handler)),
  )

/** Returns true if a run had neither ended nor been given up, because its time was up. */
const isRunning = ({ scope, startedAt, endedAt = scope.endsAt }: Run, at: number, handlerTimeoutMs: number): boolean =>
  endedAt > at && scope.endsAt > at && at - startedAt < handlerTimeoutMs - 1

/** The answers that were not true, and the rejections that could be avoided. */
function* untrue(plan: Plan, journal: Journal): Iterable<string> {
  const accepted = new Map<number, Decision>()
  for (const decision of journal.decisions) {
    const { event, by, outcome, isCorrupt } = decision
    const says = `${by} answered event ${event} with ${outcome}`
    if (outcome === 'internal' || outcome === 'unauthorized') yield says
    if ((outcome === 'malformed') !== isCorrupt && outcome !== 'incomplete' && !is503(outcome))
      yield `${says}, corrupt: ${isCorrupt}`
    if (plan.isCalm && is503(outcome) && plan.ack === 'accepted') yield `${says}, and nothing had failed`
    if (outcome === 'duplicate' && !mayBeKnown(decision, journal)) yield `${says}, and it had never been accepted`
    if (outcome === 'unavailable' && !mayBeUnavailable(decision, plan, journal)) yield `${says}, which could be avoided`
    if (outcome === 'in_progress' && plan.ack === 'accepted' && !mayBeElsewhere(decision, plan, journal))
      yield `${says}, and no other process had it`
    if (outcome !== 'accepted') continue
    const before = accepted.get(event)
    if (before !== undefined && !mayBeForgotten(before, decision, plan, journal)) yield `${says} again`
    accepted.set(event, decision)
  }
}

const is503 = (outcome: string): boolean => ['overloaded', 'closing', 'unavailable', 'in_progress'].includes(outcome)

/** Returns true if the event may have been accepted before, also by a process that could not answer any more. */
const mayBeKnown = ({ event, at }: Decision, journal: Journal): boolean =>
  journal.storageFaults.some(({ name, at: failedAt }) => ['answer-lost', 'hung'].includes(name) && failedAt <= at) ||
  journal.arrivals.filter((arrival) => arrival.event === event && arrival.at <= at).length > 1 ||
  journal.runs.some((run) => run.event === event && run.startedAt <= at) ||
  journal.lives.some(({ end, endedAt = 0 }) => end === 'killed' && endedAt <= at)

/** Returns true if the storage was out of reach for so long that no waiting helped. */
function mayBeUnavailable({ by, at }: Decision, { setup }: Plan, journal: Journal): boolean {
  if (setup === 'postgres') return hasTrouble(journal)
  const faults = setup === 'sqlite' ? ['failed', 'answer-lost'] : ['hung']
  return (
    journal.storageFaults.some((fault) => faults.includes(fault.name) && fault.at > at - 5_000 && fault.at <= at) ||
    journal.life(by).pauses.some(({ from, to }) => from <= at && to > at - 5_000)
  )
}

/** Returns true if another process took a delivery of the event, or an unknown claim may have stayed. */
const mayBeElsewhere = ({ event, by, at }: Decision, { leaseMs }: Plan, journal: Journal): boolean =>
  journal.arrivals.some((other) => other.event === event && other.by !== by && other.at <= at) ||
  journal.storageFaults.some((fault) => fault.name !== 'twice' && fault.at > at - 3 * leaseMs && fault.at <= at) ||
  journal.life(by).pauses.some(({ from, to }) => from <= at && to > at - 3 * leaseMs)

function mayBeForgotten(before: Decision, { at }: Decision, { setup, leaseMs }: Plan, journal: Journal): boolean {
  if (isDurable(setup)) return hasForgotten(journal)
  const life = journal.life(before.by)
  if (life.endedAt !== undefined && life.endedAt <= at) return true
  return setup !== 'memory' && hasLostLease(life, before.at, at, leaseMs, journal)
}

/** The dead letters of events that had attempts left. */
function* wronglyDead({ events, attempts }: Plan, journal: Journal): Iterable<string> {
  // If the storage kills every process, the last event becomes a dead letter, although it crashes nothing.
  const kills = journal.storageFaults.filter(({ name }) => name.startsWith('killed'))
  for (const [number, messages] of journal.deadLetters) {
    const runs = journal.runs.filter(({ event, attempt }) => event === number && attempt >= attempts)
    if (messages.some((message) => message.includes('times while handling it'))) {
      if (!events[number]?.isFatal && kills.length < maxCrashes)
        yield `event ${number} became a dead letter because of crashes that it did not cause`
    } else if (
      runs.length === 0 &&
      !events[number]?.isFatal &&
      !messages.some((message) => /no handler|no process has/.test(message))
    )
      yield `event ${number} became a dead letter after fewer than ${attempts} attempts`
  }
}
