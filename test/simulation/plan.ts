import { type EventType, eventTypes } from '../../src/events/media-service/catalogue.ts'
import type { EventOrder } from '../../src/inbox/inbox.ts'
import { requestsEndWork } from '../../src/internal/requests.ts'
import type { EventFault } from '../../src/service/emulator/sending/courier.ts'
import type { Profile } from '../../src/service/emulator/sending/profile.ts'
import type { Random } from './random.ts'

/** The inboxes and stores of the receivers. */
export type Setup = 'memory' | 'memory and Redis' | 'sqlite' | 'postgres'

/** Returns true if events outlive the processes. */
export const isDurable = (setup: Setup): boolean => setup === 'sqlite' || setup === 'postgres'

/** An event that will be sent. */
export interface PlannedEvent {
  /** The number, from 0. It is in the title. */
  readonly number: number
  readonly type: EventType
  readonly mediaId: string
  readonly at: number
  readonly fault: EventFault | 'reorder' | undefined
  /** Makes each process end that runs its main handler. */
  readonly isFatal: boolean
}

/** A handler of a version of the receiver. */
export interface PlannedHandler {
  readonly name: string
  readonly types: readonly EventType[]
  readonly failure: number
  readonly maxMs: number
  /** The share of its runs that exceed the time limit without checking the signal. */
  readonly hanging: number
}

/** An incident of a server. */
export type Incident =
  | { readonly what: 'kill' | 'deploy'; readonly at: number; readonly server: number }
  | { readonly what: 'pause' | 'jump'; readonly at: number; readonly server: number; readonly ms: number }

/** Everything that a seed decides before a run. */
export interface Plan {
  readonly setup: Setup
  /** No faults and no incidents: then every answer has to be 200. */
  readonly isCalm: boolean
  readonly ack: 'accepted' | 'handled'
  readonly profile: Profile
  /** Multiplies the sender's pauses. */
  readonly timeScale: number
  readonly servers: number
  readonly events: readonly PlannedEvent[]
  /** The versions of the receiver: each deploy starts the next one. */
  readonly versions: readonly (readonly PlannedHandler[])[]
  readonly incidents: readonly Incident[]
  /** The time from which on nothing fails, in ms. */
  readonly faultsUntil: number
  /** The share of the storage operations that fail. */
  readonly storageFaults: number
  /** The place of the only fault that happens among all of them, from 0 up to 1. `undefined` if all happen. */
  readonly oneStorageFault: number | undefined
  readonly networkLatencyMs: number
  readonly attempts: number
  readonly baseMs: number
  readonly handlerTimeoutMs: number
  readonly concurrency: number
  readonly maxWaiting: number
  readonly leaseMs: number
  /** On Workers: `false` if the application does not pass on the context, so that nothing outlives an answer. */
  readonly hasContext: boolean
  readonly order: EventOrder
  /** The time in which an event has to be followed by another one, and the handler of what is overdue. */
  readonly expectation?: { readonly withinMs: number; readonly handler: PlannedHandler }
}

/** The faults of single deliveries. */
export const faults = [
  'duplicate',
  'concurrent-duplicate',
  'delay',
  'corrupt-body',
  'cut-connection',
  'lost-answer',
] as const

/** The time for which SQLite remembers keys, in ms: longer than the sender tries. */
export const ttlMs = 600_000

/** Maximum error of a clock, in ms. */
const monthMs = 30 * 86_400_000

export function makePlan(random: Random, setups: readonly Setup[]): Plan {
  const setup = random.pick(setups)
  const isCalm = random.chance(0.15)
  const span = random.between(1_000, 30_000)
  const isHandledFirst = !isDurable(setup) && random.chance(0.2)
  // Workers refuse a memory inbox that acknowledges first.
  const ack = isHandledFirst || requestsEndWork ? 'handled' : 'accepted'
  // If the sender has to retry a failed handler, another server would not know which handlers have succeeded.
  const isShared = setup === 'postgres' || setup === 'memory and Redis'
  const servers = isShared && ack === 'accepted' ? random.whole(1, 3) : 1
  const isLooping = isDurable(setup) && !isCalm && random.chance(0.15)
  const events = planEvents(random, span, isCalm, isLooping)
  return {
    setup,
    isCalm,
    ack,
    servers,
    profile: random.pick(['documented', 'observed']),
    timeScale: 0.05,
    events,
    versions: planVersions(random, isCalm || ack === 'handled'),
    incidents: isCalm ? [] : planIncidents(random, span * 1.5, servers, setup),
    faultsUntil: span * 2,
    storageFaults: isCalm || random.chance(0.3) ? 0 : random.between(0, 0.2),
    oneStorageFault: random.chance(0.4) ? random.next() : undefined,
    networkLatencyMs: random.pick([0, 2, 50]),
    attempts: random.whole(2, 5),
    baseMs: random.pick([10, 1_000]),
    handlerTimeoutMs: random.pick([2_000, 30_000]),
    concurrency: random.pick([1, 2, 16]),
    maxWaiting: !isCalm && random.chance(0.1) ? random.whole(1, 5) : 10_000,
    leaseMs: random.pick([1_000, 5_000]),
    hasContext: setup !== 'memory' || ack === 'accepted' || random.chance(0.5),
    order: ack === 'accepted' && setup !== 'memory and Redis' && random.chance(0.3) ? 'strict' : 'loose',
  }
}

function planEvents(random: Random, span: number, isCalm: boolean, isLooping: boolean): readonly PlannedEvent[] {
  const faulty = isCalm ? 0 : random.pick([0.1, 0.5])
  const media = random.whole(1, 6)
  const fatal = isLooping ? 0 : -1
  return Array.from({ length: random.whole(3, 40) }, (_, number) => ({
    number,
    type: random.pick(eventTypes),
    mediaId: `media ${random.whole(1, media)}`,
    at: random.between(0, span),
    fault: random.chance(faulty) ? random.pick([...faults, 'reorder' as const]) : undefined,
    isFatal: number === fatal,
  }))
}

/** The handler `main` takes all events in all versions; others come and go, and take some types. */
function planVersions(random: Random, isOne: boolean): readonly (readonly PlannedHandler[])[] {
  const failure = random.pick([0, 0.1, 0.5])
  const maxMs = random.pick([0, 20, 300, 5_000])
  const hanging = random.pick([0, 0, 0.03])
  const all = ['main', 'index', 'notify'].map((name) => {
    const types = eventTypes.filter((type) => name === 'main' || type === 'encoding.finished' || random.chance(0.5))
    return { name, types, failure, maxMs, hanging }
  })
  return Array.from({ length: isOne ? 1 : 4 }, () => all.filter(({ name }) => name === 'main' || random.chance(0.5)))
}

function planIncidents(random: Random, span: number, servers: number, setup: Setup): readonly Incident[] {
  const kinds = ['kill', 'deploy', 'pause', ...(setup === 'sqlite' ? (['jump'] as const) : [])] as const
  return Array.from({ length: random.whole(0, 4) }, (): Incident => {
    const [at, server, what] = [random.between(0, span), random.whole(0, servers - 1), random.pick(kinds)]
    if (what === 'kill' || what === 'deploy') return { at, server, what }
    if (what === 'pause') return { at, server, what, ms: random.pick([500, 4_000, 15_000]) }
    return { at, server, what, ms: random.pick([-monthMs, -5_000, 5_000, monthMs]) }
  })
}
