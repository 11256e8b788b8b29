import type { Acceptance, AcceptedEvent, EventOrder, InboxHost } from '../../../src/inbox/inbox.ts'
import type {
  ClaimedLane,
  ClaimRequest,
  Database,
  HeldEvent,
  NewEvent,
  RecordedLane,
  SettledEvent,
  SettledLane,
  StoredChanges,
  StoredEvent,
} from '../../../src/inbox/sql/database.ts'
import { makeNewEvent } from '../../../src/inbox/sql/intake.ts'
import type { MaybePromise } from '../../../src/internal/maybe-promise.ts'
import { sleep } from '../../../src/internal/timers.ts'
import type { Assertion } from '../../../src/testing/runner.ts'
import { eventOf } from '../../support/inbox.ts'

/** A database under test, without tables at first. */
export interface DatabaseSubject {
  /**
   * Opens the database as the next process would, with `ttlMs: 50`; one of a single process only after the previous one
   * has ended.
   */
  open(host: InboxHost): MaybePromise<Database>
  /** Kills a process: its lease, if there is one, expires now. */
  crash(process: Pick<DatabaseProcess, 'owner' | 'database'>): MaybePromise<void>
  close?(): MaybePromise<void>
}

/** Longest wait for something that must come (ms). */
const patienceMs = 10_000

export const handlers = [{ name: 'a' }]

/** Plays the engine of one process. */
export class DatabaseProcess {
  readonly database: Database
  readonly owner = crypto.randomUUID()

  constructor(database: Database) {
    this.database = database
  }

  get steps() {
    return this.database.steps
  }

  async begin(): Promise<this> {
    const { database, owner } = this
    const joined = new Promise<void>((resolve) =>
      database.open(() => database.run(database.steps.join(owner, handlers)).then(resolve)),
    )
    await database.ready()
    await joined
    return this
  }

  async leave(): Promise<void> {
    await this.database.run(this.steps.leave(this.owner, handlers))
  }

  newEvent(key: string, mediaId: string, changes?: StoredChanges): NewEvent {
    const accepted: AcceptedEvent = { ...eventOf(key, mediaId), receivedAt: new Date() }
    return makeNewEvent(this.database, accepted, ['a', 'b'], changes)
  }

  async accept(key: string, mediaId = `media of ${key}`, changes?: StoredChanges): Promise<Acceptance> {
    const event = this.newEvent(key, mediaId, changes)
    return (await this.database.run(this.steps.accept([event])))[0] as Acceptance
  }

  async claim(request: Partial<ClaimRequest> = {}): Promise<readonly ClaimedLane[]> {
    const asked = { owner: this.owner, lanes: 100, marked: 0, waits: false, ...request }
    return (await this.database.run(this.steps.claim(asked))).lanes
  }

  /** Claims the one lane that must be ready. */
  async lane(request: Partial<ClaimRequest> = {}): Promise<ClaimedLane> {
    for (const endsAt = performance.now() + patienceMs; performance.now() < endsAt; await sleep(10)) {
      const [lane] = await this.claim({ lanes: 1, ...request })
      if (lane !== undefined) return lane
    }
    throw new Error('no lane became ready')
  }

  settle(
    { media, turn, position, events }: ClaimedLane,
    ends: readonly SettledEvent[],
    changes: Partial<SettledLane> = {},
  ): Promise<readonly RecordedLane[]> {
    const last = Math.max(position, ...ends.map(({ id }) => id))
    const lane = { media, turn, first: position, last, latestAt: undefined, awaits: false, clear: false }
    const release = ends.length >= events.length ? freely : undefined
    return this.database.run(this.steps.settle(this.owner, [{ ...lane, release, ...changes }], ends))
  }

  held({ media, turn }: ClaimedLane, { id }: StoredEvent): HeldEvent {
    return { owner: this.owner, media, turn, id }
  }
}

/** Releases a lane of which all was read. */
export const freely = { hasMore: false, restMs: undefined } as const

/** The end of an attempt at an event. */
export const ended = (
  { media }: ClaimedLane,
  { id, attempts }: StoredEvent,
  changes: Partial<SettledEvent> = {},
): SettledEvent => ({
  ...{ media, id, kind: 'end', attempts: attempts + 1, counts: true, delayMs: 0, completed: [] },
  ...{ failed: undefined, late: false, awaits: [], ...changes },
})

export const keysOf = ({ events }: ClaimedLane): readonly string[] => events.map(({ event }) => JSON.parse(event).key)

export const eventIn = ({ events }: ClaimedLane, index = 0): StoredEvent => {
  const event = events[index]
  if (event === undefined) throw new Error(`the lane was claimed without its event ${index}`)
  return event
}

/** What begins an expectation of a media item, overdue at once, and what ends it. */
export function expectation(process: DatabaseProcess, mediaId = 'media') {
  const subject = process.database.hashKey(`rule of ${mediaId}`)
  const { hash, media, event, head, owed } = process.newEvent(`overdue ${mediaId}`, mediaId)
  const begun = { hash, media, event, head, trace: undefined, owed: owed as string, subject, rule: '"rule"' }
  const begins = [{ ...begun, beganAt: 1_000, dueAt: Date.now() - 1 }]
  return { begins: { at: 1_000, begins, ends: [] }, ends: { at: 2_000, begins: [], ends: [subject] } }
}

export interface DatabaseCheck {
  readonly subject: DatabaseSubject
  /** Starts a process. */
  next(order?: EventOrder): Promise<DatabaseProcess>
  expect(value: unknown): Assertion
}

export type DeclareCheck = (name: string, run: (check: DatabaseCheck) => Promise<void>) => void

/** Runs a transaction, and returns the code of its error. */
export async function codeOfTransaction(process: DatabaseProcess, held: HeldEvent): Promise<unknown> {
  const scope = { handler: 'a', signal: new AbortController().signal }
  return process.database
    .transaction(held, scope, () => 'committed')
    .then(
      () => undefined,
      (error) => error.code,
    )
}

/** Takes over once. Returns true if there may be more. */
export const takeOver = async (process: DatabaseProcess): Promise<boolean> => {
  const { shared } = process.steps
  return shared !== undefined && process.database.run(shared.takeOver())
}
