import type { EventType } from '../../src/events/media-service/catalogue.ts'
import { faults, type Incident, type Plan, type PlannedEvent } from './plan.ts'
import type { Random } from './random.ts'

/** The rule of all versions: an event of this type has to be followed by one of the others. */
export const begin: EventType = 'file.received'
export const ends: readonly EventType[] = ['encoding.finished', 'encoding.failed']

/**
 * Adds expectations to a part of the plans.
 * @param random another one than the plan's, so that the seeds without expectations stay as they were
 */
export function withExpectation(plan: Plan, random: Random): Plan {
  // Processes that share only a store of keys keep no expectations.
  const canExpect = plan.setup !== 'memory and Redis' && plan.ack === 'accepted'
  if (!canExpect || !random.chance(0.4)) return plan
  const span = plan.faultsUntil / 2
  // Much is overdue at the same time, and more than the inbox has room for.
  const isFull = !plan.isCalm && random.chance(0.3)
  const withinMs = Math.round(Math.max(1_000, span * (isFull ? 0.5 : random.pick([0.1, 0.5, 2]))))
  const handler = {
    name: 'overdue',
    types: [],
    failure: random.pick([0, 0.3]),
    maxMs: isFull ? 3_000 : random.pick([0, 300]),
    hanging: random.pick([0, 0, 0.03]),
  }
  const events = [...plan.events, ...planEvents(random, plan, withinMs, isFull ? random.between(0, span) : undefined)]
  const incidents = [...plan.incidents, ...planIncidents(random, plan, events, withinMs)]
  const room = isFull ? { concurrency: 1, maxWaiting: random.whole(1, 2) } : {}
  return { ...plan, expectation: { withinMs, handler }, events, incidents, ...room }
}

/**
 * Plans more events that begin and end expectations.
 * @param burstAt the time at which all media items begin, if they do so at the same time
 */
function planEvents(random: Random, plan: Plan, withinMs: number, burstAt?: number): readonly PlannedEvent[] {
  const planned: PlannedEvent[] = []
  const add = (type: EventType, mediaId: string, at: number) => {
    const fault = !plan.isCalm && random.chance(0.3) ? random.pick(faults) : undefined
    planned.push({ number: plan.events.length + planned.length, type, mediaId, at, fault, isFatal: false })
  }
  const media = Array.from({ length: random.whole(1, 8) }, (_, index) => `expecting media ${index}`)
  for (const mediaId of media) {
    const at = burstAt ?? random.between(0, plan.faultsUntil / 2)
    const addEnd = () => {
      const share = random.pick([random.between(-0.2, 1.5), random.between(0.98, 1.02)])
      add(random.pick(ends), mediaId, Math.max(0, at + withinMs * share))
    }
    // Events are emitted in the order in which they are planned, so this end is older, whenever it is sent.
    if (random.chance(0.2)) addEnd()
    add(begin, mediaId, at)
    if (random.chance(0.2)) add(begin, mediaId, at + random.between(0, withinMs))
    if (random.chance(0.5)) addEnd()
  }
  return planned
}

/** In a part of the plans, the end of a process while something is due. */
function planIncidents(
  random: Random,
  { isCalm, faultsUntil, servers }: Plan,
  events: readonly PlannedEvent[],
  withinMs: number,
): readonly Incident[] {
  const due = events.filter(({ type, at }) => type === begin && at + withinMs < faultsUntil * 0.75)
  if (isCalm || due.length === 0 || random.chance(0.5)) return []
  const at = random.pick(due).at + withinMs + random.between(-100, 100)
  return [{ what: random.pick(['kill', 'deploy']), at, server: random.whole(0, servers - 1) }]
}
