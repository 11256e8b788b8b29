import { sleep } from '../../../src/internal/timers.ts'
import {
  codeOfTransaction,
  type DatabaseCheck,
  type DatabaseProcess,
  type DeclareCheck,
  ended,
  eventIn,
  expectation,
  freely,
  keysOf,
  takeOver,
} from './database-process.ts'

/** What the statements between processes must keep. */
export function sharedChecks(check: DeclareCheck): void {
  claimChecks(check)
  lateChecks(check)
  lockChecks(check)
}

const sharedOf = ({ steps: { shared } }: DatabaseProcess) => {
  if (shared === undefined) throw new Error('a shared database has the statements `shared`')
  return shared
}

/** Fails if it takes longer than 5 s: something waits for a lock. */
async function inTime<T>(promise: Promise<T>): Promise<T> {
  const late = sleep(5_000).then(() => Promise.reject(new Error('it waits for a lock')))
  return Promise.race([promise, late])
}

function claimChecks(check: DeclareCheck): void {
  check('gives each lane to one of two processes that claim at once', async ({ next, expect }) => {
    const processes = [await next(), await next()] as const
    const keys = Array.from({ length: 60 }, (_, index) => `key ${index}`)
    for (const key of keys) await processes[0].accept(key)
    const claims = Array.from({ length: 8 }, (_, index) => processes[index % 2 === 0 ? 0 : 1].claim({ lanes: 10 }))
    const lanes = (await Promise.all(claims)).flat()
    while (lanes.length < 60) lanes.push(await processes[1].lane())
    expect(lanes.flatMap(keysOf).toSorted()).toEqual(keys.toSorted())
    expect([await processes[0].claim(), await processes[1].claim()]).toEqual([[], []])
  })

  check('adopts a lane whose claim had no answer, and records nothing sent for it before', async ({ next, expect }) => {
    const process = await next()
    await process.accept('one')
    const unanswered = await process.lane()
    const adopt = (known: readonly string[]) => process.database.run(sharedOf(process).adopt(process.owner, known))
    expect(await adopt([unanswered.media])).toEqual([])
    const [adopted] = await adopt([])
    expect([adopted?.media, (adopted?.turn ?? 0) > unanswered.turn]).toEqual([unanswered.media, true])
    expect(await process.settle(unanswered, [ended(unanswered, eventIn(unanswered))])).toEqual([])
    expect(adopted && keysOf(adopted)).toEqual(['one'])
  })

  check('finds lanes whose events await handlers, for a process that has them', async ({ next, expect }) => {
    const [one, other] = [await next(), await next()]
    await one.accept('one')
    const lane = await one.lane()
    const release = ended(lane, eventIn(lane), {
      kind: 'release',
      counts: false,
      attempts: 0,
      delayMs: 60_000,
      awaits: ['"b"'],
    })
    await one.settle(lane, [release], { awaits: true })
    const awaited = (names: readonly string[]) =>
      other.database.run(sharedOf(other).claimAwaited(other.owner, names, 10))
    expect([await other.claim(), await awaited(['"a"'])]).toEqual([[], []])
    const [found] = await awaited(['"a"', '"b"'])
    expect(found && [keysOf(found), eventIn(found).dueInMs, eventIn(found).attempts]).toEqual([['one'], 0, 0])
  })
}

function lateChecks(check: DeclareCheck): void {
  /** Two processes, of which the first has a lane with the events `1` and `2`, and is then taken over. */
  async function afterDeath({ subject, next }: DatabaseCheck) {
    const [dead, process] = [await next(), await next()]
    for (const key of ['1', '2']) await dead.accept(key, 'media')
    const lane = await dead.lane()
    await subject.crash(dead)
    while (await takeOver(process));
    return { dead, process, lane }
  }

  check('records nothing of a process that was taken over', async (subject) => {
    const { dead, process, lane } = await afterDeath(subject)
    const { expect } = subject
    const late = async () => [
      await dead.settle(lane, [ended(lane, eventIn(lane))], { release: freely }),
      await dead.database.run(dead.steps.count(dead.held(lane, eventIn(lane)), 0, 1)),
      await codeOfTransaction(dead, dead.held(lane, eventIn(lane))),
    ]
    expect(await late()).toEqual([[], false, 'lease_lost'])
    const next = await process.lane({ marked: 1 })
    expect(await late()).toEqual([[], false, 'lease_lost'])
    expect([keysOf(next), eventIn(next).crashes, eventIn(next).completed]).toEqual([['1', '2'], 0, '[]'])
    expect(await process.claim({ marked: 1 })).toEqual([])
  })

  check('gives nothing to a process that has expired or left, and renews no lease of it', async (subject) => {
    const { dead, process } = await afterDeath(subject)
    const { expect } = subject
    await process.accept('other')
    const renewed = await dead.database.run(sharedOf(dead).renew(dead.owner, undefined))
    expect([renewed, await dead.claim({ marked: 5 })]).toEqual([false, []])
    await process.leave()
    expect(await process.claim({ marked: 5 })).toEqual([])
    const heir = await subject.next()
    expect((await heir.claim({ marked: 5 })).flatMap(keysOf).toSorted()).toEqual(['1', '2', 'other'])
  })

  check('leaves no lane to a process that leaves while it claims', async ({ next, expect }) => {
    const heir = await next()
    for (let round = 0; round < 20; round++) {
      const leaving = await next()
      await heir.accept(`${round}`)
      await Promise.all([leaving.claim(), leaving.leave()])
      expect(keysOf(await heir.lane())).toEqual([`${round}`])
    }
  })
}

function lockChecks(check: DeclareCheck): void {
  check('stores crosswise keys of two processes without a deadlock', async ({ next, expect }) => {
    const processes = [await next(), await next()] as const
    for (let round = 0; round < 20; round++) {
      const keys = Array.from({ length: 200 }, (_, index) => `${round} ${index}`)
      const accept = (process: DatabaseProcess, ordered: readonly string[], media: string) =>
        process.database.run(
          process.steps.accept(ordered.map((key, index) => process.newEvent(key, `${media} ${index}`))),
        )
      const answers = await Promise.all([
        accept(processes[0], keys, 'media'),
        accept(processes[1], keys.toReversed(), 'another'),
      ])
      expect(answers.flat().filter((each) => each === 'accepted').length).toBe(200)
    }
  })

  check('fires expectations beside events that end them, without a deadlock', async ({ next, expect }) => {
    const [firing, ending] = [await next(), await next()]
    for (let round = 0; round < 60; round++) {
      const media = Array.from({ length: 200 }, (_, index) => `${round} ${index}`)
      const accept = (names: readonly string[], changing: 'begins' | 'ends') =>
        ending.database.run(
          ending.steps.accept(
            names.map((name) => ending.newEvent(`${changing} ${name}`, name, expectation(ending, name)[changing])),
          ),
        )
      await accept(media, 'begins')
      const { overdue } = await firing.database.run(firing.steps.overdue(200))
      expect(overdue.length).toBe(200)
      const [fire, end] = [() => firing.database.run(firing.steps.fire(overdue)), () => accept(media, 'ends')]
      await Promise.all([fire(), sleep(round % 10).then(end)])
    }
  })

  check('claims a lane that accepts lock one after the other', async ({ next, expect }) => {
    const [busy, process] = [await next(), await next()]
    let isOver = false
    const accepting = Array.from({ length: 4 }, async (_, lane) => {
      for (let count = 0; !isOver; count++) await busy.accept(`${lane} ${count}`, 'hot')
    })
    const claimed = await inTime(process.lane({ waits: true })).finally(() => {
      isOver = true
    })
    await Promise.all(accepting)
    expect(claimed.events.length > 0).toBe(true)
  })

  check('lets nothing wait for the transaction of a handler, and commits it', async ({ next, expect }) => {
    const [one, other] = [await next(), await next()]
    for (const key of ['1', '2']) await one.accept(key, 'media')
    const lane = await one.lane()
    let finish = () => {}
    const finished = new Promise<void>((resolve) => {
      finish = resolve
    })
    const scope = { handler: 'a', signal: new AbortController().signal }
    const transaction = one.database.transaction(one.held(lane, eventIn(lane)), scope, () => finished)
    transaction.catch(() => {})
    try {
      expect(await inTime(other.accept('3', 'media'))).toBe('accepted')
      expect(await inTime(other.accept('free'))).toBe('accepted')
      expect((await inTime(other.claim())).flatMap(keysOf)).toEqual(['free'])
      expect((await inTime(one.settle(lane, [ended(lane, eventIn(lane, 1))], { first: lane.position }))).length).toBe(1)
    } finally {
      finish()
    }
    await transaction
    const { rows: _, ...progress } = { rows: 0, ...ended(lane, eventIn(lane), { kind: 'retry', completed: ['b'] }) }
    await one.settle(lane, [progress], { first: lane.position, release: freely })
    const again = await one.lane()
    const first = again.events.find(({ id }) => id === progress.id)
    expect(JSON.parse(first?.completed ?? '[]').toSorted()).toEqual(['a', 'b'])
  })
}
