import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Acceptance } from '../../src/inbox/inbox.ts'
import { lockLanes } from '../../src/inbox/postgres/statements.ts'
import type { PostgresStep } from '../../src/inbox/postgres/step.ts'
import type { Database, NewEvent, SettledEvent, SettledLane, Step, Steps } from '../../src/inbox/sql/database.ts'
import { sleep } from '../../src/internal/timers.ts'
import { findPostgres } from '../support/postgres/find-postgres.ts'
import { PostgresServer } from '../support/postgres/postgres-server.ts'
import { postgresDatabases, sqliteDatabases } from './databases.ts'
import { failuresOf } from './failures-of.ts'
import { databaseContract } from './suites/database.ts'
import type { DatabaseSubject } from './suites/database-process.ts'

/** A step of a wrong database: what it does instead. */
class WrongStep<Result> implements Step<Result> {
  readonly result?: Result
  readonly run: () => Promise<Result>
  constructor(run: () => Promise<Result>) {
    this.run = run
  }
}

const wrongStep = <Result>(run: () => Promise<Result>): Step<Result> => new WrongStep(run)

interface Faulty {
  readonly steps?: Partial<Omit<Steps, 'shared'>> & {
    readonly shared?: Partial<NonNullable<Steps['shared']>>
  }
  readonly database?: Partial<Database>
}

/** The fault, the check that catches it, and the parts of the database that have it. */
type Fault = readonly [fault: string, caughtBy: string, wrong: (right: Database) => Faulty]

/** An object with other members. */
const differing = <Type extends object>(right: Type, wrong: Partial<Type>): Type =>
  new Proxy(right, {
    get(target, name) {
      if (Object.hasOwn(wrong, name)) return Reflect.get(wrong, name)
      const value = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })

function wrongDatabase(right: Database, { steps = {}, database = {} }: Faulty): Database {
  const { shared, ...own } = steps
  const all = differing(right.steps, {
    ...own,
    ...(shared && right.steps.shared && { shared: differing(right.steps.shared, shared) }),
  } as Partial<Steps>)
  return differing(right, {
    steps: all,
    run: (step) => (step instanceof WrongStep ? step.run() : right.run(step)),
    ...database,
  })
}

const wrongly = (subjects: () => Promise<DatabaseSubject>, wrong: Fault[2]) => async (): Promise<DatabaseSubject> => {
  const subject = await subjects()
  return {
    ...subject,
    async open(host) {
      const right = await subject.open(host)
      return wrongDatabase(right, wrong(right))
    },
  }
}

type Settle = Steps['settle']

/** Settles with other parameters, or does something after it. */
const settling = (
  { steps, run }: { readonly steps: Steps; readonly run: Database['run'] },
  {
    lane = (each) => each,
    event = (each) => each,
    after = async () => {},
  }: {
    readonly lane?: (lane: SettledLane, owner: string) => SettledLane | Promise<SettledLane>
    readonly event?: (event: SettledEvent) => SettledEvent | Promise<SettledEvent>
    readonly after?: (lanes: readonly SettledLane[], events: readonly SettledEvent[]) => Promise<unknown>
  },
): { settle: Settle } => ({
  settle: (owner, lanes, events) =>
    wrongStep(async () => {
      const changed = await Promise.all(lanes.map((each) => lane(each, owner)))
      const recorded = await run(steps.settle(owner, changed, await Promise.all(events.map(event))))
      await after(lanes, events)
      return recorded
    }),
})

/** The right database, bound. */
const of = (right: Database) => ({ steps: right.steps, run: <T>(step: Step<T>) => right.run(step) })

const setLanes = (right: Database, set: string, lanes: readonly { readonly media: string }[]) =>
  right.change(lanes.map(({ media }) => ({ sql: `UPDATE $lane SET ${set} WHERE media = $1`, values: [media] })))

const wakeLanesOf = (right: Database, events: readonly NewEvent[]) =>
  right.change(
    events.map(({ media }) => ({
      sql: `UPDATE $lane SET ready_at = $now WHERE media = ${right.dialect.lane('$1')}`,
      values: [media],
    })),
  )

async function read<Row>(right: Database, sql: string, value: string | number): Promise<Row> {
  const [row] = await right.read<Row>(sql, [value])
  return row as Row
}

const ofOneProcess: readonly Fault[] = [
  [
    'says that every event is new',
    'stores a key once, in one batch too',
    (right) => ({
      steps: {
        accept: (events) =>
          wrongStep(async () => (await right.run(right.steps.accept(events))).map(() => 'accepted' as const)),
      },
    }),
  ],
  [
    'wakes a lane for a duplicate',
    'makes a lane ready for what comes while it is held, and for no duplicate',
    (right) => ({
      steps: {
        accept: (events) =>
          wrongStep(async () => {
            const answers = await right.run(right.steps.accept(events))
            await wakeLanesOf(right, events)
            return answers
          }),
      },
    }),
  ],
  [
    'forgets at a release what came since the claim',
    'makes a lane ready for what comes while it is held, and for no duplicate',
    (right) => ({ steps: settling(of(right), { after: (lanes) => setLanes(right, 'ready_at = NULL', lanes) }) }),
  ],
  [
    'hands out the newest events first',
    'claims a lane once, with its events in the order of acceptance',
    (right) => ({
      steps: {
        claim: (request) =>
          wrongStep(async () => {
            const claim = await right.run(right.steps.claim(request))
            return { ...claim, lanes: claim.lanes.map((lane) => ({ ...lane, events: lane.events.toReversed() })) }
          }),
      },
    }),
  ],
  [
    'compares names without regard to case',
    'tells media items and keys of any text apart',
    (right) => ({ database: { hashMedia: (mediaId) => right.hashMedia(mediaId.toLowerCase()) } }),
  ],
  [
    'cuts long media ids',
    'tells media items and keys of any text apart',
    (right) => ({ database: { hashMedia: (mediaId) => right.hashMedia(mediaId.slice(0, 1_000)) } }),
  ],
  [
    'lets no lane rest',
    'lets a lane rest for a time, with what nobody has tried',
    (right) => ({
      steps: settling(of(right), {
        lane: (lane) => ({ ...lane, release: lane.release && { hasMore: true, restMs: undefined } }),
      }),
    }),
  ],
  [
    'lets a settle overtake an earlier one',
    'records no settle that overtakes an earlier one',
    (right) => ({ steps: settling(of(right), { lane: (lane) => ({ ...lane, first: 0 }) }) }),
  ],
  [
    'counts an attempt again whose record is repeated',
    'records a settle once that is sent again',
    (right) => ({
      steps: settling(of(right), {
        async event(event) {
          const sql = 'SELECT attempts FROM $event WHERE id = $1'
          const { attempts } = await read<{ attempts: number }>(right, sql, event.id)
          return { ...event, attempts: attempts + Number(event.counts) }
        },
      }),
    }),
  ],
  [
    'does not compare turns',
    'frees no lane by a release that is sent again after the next claim',
    (right) => ({
      steps: settling(of(right), {
        async lane(lane) {
          const sql = 'SELECT turn FROM $lane WHERE media = $1'
          return { ...lane, turn: (await read<{ turn: number }>(right, sql, lane.media)).turn }
        },
      }),
    }),
  ],
  [
    'does not see at a release the retry that is recorded with it',
    'is ready when a retry is due that was recorded with the release',
    (right) => ({
      steps: settling(of(right), {
        after: (lanes, [event]) =>
          event?.kind === 'retry' ? setLanes(right, 'ready_at = NULL', lanes) : Promise.resolve(),
      }),
    }),
  ],
  [
    'overwrites what a transaction has recorded',
    'adds to what a transaction has recorded',
    (right) => ({
      steps: settling(of(right), {
        after: (_, events) =>
          right.change(
            events.map(({ id, completed }) => ({
              sql: 'UPDATE $event SET completed = $1 WHERE id = $2',
              values: [JSON.stringify(completed), id],
            })),
          ),
      }),
    }),
  ],
  [
    'commits a transaction after the release of the lane',
    'adds to what a transaction has recorded',
    (right) => {
      let isFirst = true
      return {
        database: {
          async transaction(held, scope, run) {
            if (!isFirst) return run(undefined as never)
            isFirst = false
            return right.transaction(held, scope, run)
          },
        },
      }
    },
  ],
  [
    'lets an accept wake a lane that waits for a retry, in strict order',
    'lets nothing pass a retry in strict order',
    (right) => ({
      steps: {
        accept: (events) =>
          wrongStep(async () => {
            const answers = await right.run(right.steps.accept(events))
            await wakeLanesOf(right, events)
            return answers
          }),
        claim: (request) =>
          wrongStep(async () => {
            const claim = await right.run(right.steps.claim(request))
            const startable = (lane: (typeof claim.lanes)[number]) => lane.events.filter(({ dueInMs }) => dueInMs === 0)
            return { ...claim, lanes: claim.lanes.map((lane) => ({ ...lane, events: startable(lane) })) }
          }),
      },
    }),
  ],
  [
    'marks no lane at a start',
    'marks the lanes of a process that died, and no others',
    (right) => ({
      steps: {
        join: (owner, handlers) =>
          wrongStep(async () => {
            await right.run(right.steps.join(owner, handlers))
            await right.change([{ sql: 'UPDATE $lane SET crashes = 0' }])
          }),
      },
    }),
  ],
  [
    'marks the lanes of a process that leaves',
    'marks nothing if a process leaves',
    (right) => ({
      steps: {
        leave: (owner, handlers) =>
          wrongStep(async () => {
            await right.change([{ sql: 'UPDATE $lane SET crashes = crashes + 1' }])
            await right.run(right.steps.leave(owner, handlers))
          }),
      },
    }),
  ],
  [
    'counts an event twice whose count is repeated',
    'counts an event before it starts, once, and only for who has the lane',
    (right) => ({
      steps: {
        count: ({ id }) =>
          wrongStep(async () => {
            await right.change([{ sql: 'UPDATE $event SET crashes = crashes + 1 WHERE id = $1', values: [id] }])
            return true
          }),
      },
    }),
  ],
  [
    'clears a mark with every release',
    'counts an event before it starts, once, and only for who has the lane',
    (right) => ({ steps: settling(of(right), { lane: (lane) => ({ ...lane, clear: true }) }) }),
  ],
  [
    'clears no mark',
    'clears the mark of a lane when it is told to, with the crashes of the event that ended',
    (right) => ({ steps: settling(of(right), { lane: (lane) => ({ ...lane, clear: false }) }) }),
  ],
  [
    'replays an event in its old place',
    'replays a dead letter at the end of its lane, without its completed handlers',
    (right) => ({
      steps: {
        replay: (dead) =>
          wrongStep(async () => {
            const sql = 'UPDATE $event SET died_at = NULL, attempts = 0 WHERE id = $1 AND died_at IS NOT NULL'
            const changed = await right.change(dead.map(({ id }) => ({ sql, values: [id] })))
            await setLanes(right, 'ready_at = $now', dead)
            return dead.filter((_, index) => changed[index] === 1).map(({ id }) => id)
          }),
      },
    }),
  ],
  [
    'forgets what a replayed event owes',
    'replays a dead letter at the end of its lane, without its completed handlers',
    (right) => ({
      steps: {
        replay: (dead) =>
          wrongStep(async () => {
            const found = await right.run(right.steps.replay(dead))
            await right.change([{ sql: "UPDATE $event SET owed = '[]'" }])
            return found
          }),
      },
    }),
  ],
  [
    'says that it fired what another one has fired',
    'fires an overdue expectation once',
    (right) => ({
      steps: {
        fire: (overdue) =>
          wrongStep(async () => {
            await right.run(right.steps.fire(overdue))
            return overdue.length
          }),
      },
    }),
  ],
  [
    'forgets the ends of expectations',
    'fires no expectation that ends after it was found overdue, or ended before it began',
    (right) => ({
      steps: {
        accept: (events) =>
          right.steps.accept(
            events.map((event) => ({ ...event, changes: event.changes && { ...event.changes, ends: [] } })),
          ),
      },
    }),
  ],
  [
    'drops what the events of an unreadable delivery expect',
    'stores the events of an unreadable delivery in its place, once, with what they expect',
    (right) => ({
      steps: {
        replace: (unreadable, events) =>
          right.steps.replace(
            unreadable,
            events.map((event) => ({ ...event, changes: undefined })),
          ),
      },
    }),
  ],
  [
    'makes a retry due, and wakes no lane for it',
    'makes a retry due at once when it is asked to, and nothing else',
    (right) => ({
      steps: {
        retry: (hash) =>
          wrongStep(async () => {
            const sql = 'UPDATE $event SET due_at = $now WHERE hash = $1 AND due_at > $now'
            return (await right.change([{ sql, values: [hash] }]))[0] === 1
          }),
      },
    }),
  ],
  [
    'forgets dead letters with what has ended',
    'forgets what has ended, and reads nothing old when its lane comes back',
    (right) => ({
      steps: {
        expire: () =>
          wrongStep(async () => {
            await right.change([{ sql: 'DELETE FROM $event WHERE ended_at IS NOT NULL OR died_at IS NOT NULL' }])
            return { nextInMs: 0 }
          }),
      },
    }),
  ],
]

/** Runs the one check that must catch a fault. */
const caught = async (subjects: () => Promise<DatabaseSubject>, [, caughtBy, wrong]: Fault, shared: boolean) => {
  const suite = (runner: Parameters<typeof databaseContract>[1]) =>
    databaseContract(wrongly(subjects, wrong), runner, { shared })
  return Object.keys(await failuresOf(suite, caughtBy))
}

test.each(ofOneProcess.map((fault) => [fault[0], fault] as const))(
  'the contract catches a database that %s',
  async (_, fault) => {
    expect(await caught(sqliteDatabases, fault, false)).toEqual([fault[1]])
  },
)

const shared = (right: Database) => {
  const { shared: steps } = right.steps
  if (steps === undefined) throw new Error('not a shared database')
  return steps
}

const isOf = (part: PostgresStep<unknown>['parts'][number], text: string) =>
  typeof part !== 'string' && part.text === text

const ofTwoProcesses: readonly Fault[] = [
  [
    'gives a lane to two processes',
    'gives each lane to one of two processes that claim at once',
    (right) => ({
      steps: {
        claim: (request) =>
          wrongStep(async () => {
            const claim = await right.run(right.steps.claim(request))
            await setLanes(right, 'owner = NULL, ready_at = $now', claim.lanes)
            return claim
          }),
      },
    }),
  ],
  [
    'adopts nothing',
    'adopts a lane whose claim had no answer, and records nothing sent for it before',
    () => ({ steps: { shared: { adopt: () => wrongStep(async () => []) } } }),
  ],
  [
    'adopts a lane in its old turn',
    'adopts a lane whose claim had no answer, and records nothing sent for it before',
    (right) => ({
      steps: {
        shared: {
          adopt: (owner, known) =>
            wrongStep(async () => {
              const lanes = await right.run(shared(right).adopt(owner, known))
              await setLanes(right, 'turn = turn - 1', lanes)
              return lanes
            }),
        },
      },
    }),
  ],
  [
    'gives everything that is awaited to anyone',
    'finds lanes whose events await handlers, for a process that has them',
    (right) => ({
      steps: {
        shared: { claimAwaited: (owner, _, lanes) => shared(right).claimAwaited(owner, ['"a"', '"b"'], lanes) },
      },
    }),
  ],
  [
    'marks no lane at a takeover',
    'marks the lanes of a process that died, and no others',
    (right) => ({
      steps: {
        shared: {
          takeOver: () =>
            wrongStep(async () => {
              const mayHaveMore = await right.run(shared(right).takeOver())
              await right.change([{ sql: 'UPDATE $lane SET crashes = 0' }])
              return mayHaveMore
            }),
        },
      },
    }),
  ],
  [
    'records what comes late from a process that was taken over',
    'records nothing of a process that was taken over',
    (right) => ({
      steps: settling(of(right), {
        async lane(lane, owner) {
          await right.change([
            { sql: 'UPDATE $lane SET owner = $1, turn = $2 WHERE media = $3', values: [owner, lane.turn, lane.media] },
          ])
          return lane
        },
      }),
    }),
  ],
  [
    'gives lanes to a process whose lease has expired',
    'gives nothing to a process that has expired or left, and renews no lease of it',
    (right) => ({
      steps: {
        claim: (request) =>
          wrongStep(async () => {
            const sql = `INSERT INTO $process (id, expires_at, lease_ms, handlers) VALUES ($1, now() + interval '1 h', 1, '[]')
              ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at`
            await right.change([{ sql, values: [request.owner] }])
            return right.run(right.steps.claim(request))
          }),
      },
    }),
  ],
  [
    'renews a lease that has expired',
    'gives nothing to a process that has expired or left, and renews no lease of it',
    (right) => ({
      steps: {
        shared: {
          renew: (owner, running) =>
            wrongStep(async () => (await right.run(shared(right).renew(owner, running))) || true),
        },
      },
    }),
  ],
  [
    'frees the lanes of a process before it deletes the process',
    'leaves no lane to a process that leaves while it claims',
    (right) => ({
      steps: {
        leave: (owner) =>
          wrongStep(async () => {
            await right.change([
              { sql: 'UPDATE $lane SET owner = NULL, ready_at = $now WHERE owner = $1', values: [owner] },
            ])
            await sleep(50)
            await right.change([{ sql: 'DELETE FROM $process WHERE id = $1', values: [owner] }])
          }),
      },
    }),
  ],
  [
    'stores keys in the order of their arrival',
    'stores crosswise keys of two processes without a deadlock',
    (right) => ({
      steps: {
        accept(events) {
          const step = right.steps.accept(events) as PostgresStep<readonly Acceptance[]>
          const inArrival = (text: string) => text.replace('ORDER BY hash, id', 'ORDER BY place')
          const parts = step.parts.map((part) =>
            typeof part === 'string' ? inArrival(part) : { ...part, name: '', text: inArrival(part.text) },
          )
          return { ...step, parts }
        },
      },
    }),
  ],
  [
    'locks an expectation before its lane',
    'fires expectations beside events that end them, without a deadlock',
    (right) => ({
      steps: {
        fire(overdue) {
          const step = right.steps.fire(overdue) as PostgresStep<number>
          const parts = step.parts.map((part) => (isOf(part, lockLanes) ? 'SELECT' : part))
          return { ...step, parts }
        },
      },
    }),
  ],
  [
    'keeps a lane locked while a handler runs',
    'lets nothing wait for the transaction of a handler, and commits it',
    (right) => ({
      database: {
        async transaction(held, scope, run) {
          const sql = `WITH locked AS MATERIALIZED (SELECT FROM $lane WHERE media = $1 FOR UPDATE)
            UPDATE $lane SET turn = turn + (SELECT 0 * count(pg_sleep(8)) FROM locked) WHERE media = $1`
          await right.change([{ sql, values: [held.media] }])
          return right.transaction(held, scope, run)
        },
      },
    }),
  ],
]

describe.skipIf(!findPostgres())('the contract catches a shared database that', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await PostgresServer.start()
  })
  afterAll(() => server?.remove())
  const query = (text: string) => server.query(text)
  const subjects = postgresDatabases(() => ({ query, connection: server.url, listen: true }))

  test.each(ofTwoProcesses.map((fault) => [fault[0], fault] as const))('%s', async (_, fault) => {
    expect(await caught(subjects, fault, true)).toEqual([fault[1]])
  })
})
