import type { ParkedRun } from '../../inbox/inbox.ts'
import type { Pauses } from '../../inbox/reading.ts'
import { type Call, eventOf, until } from './handling.ts'
import type { Check, InboxCheck } from './inbox-check.ts'

/** More events than an inbox under test runs at a time. */
const many = 40

/** How long to watch for an attempt that must not start (ms). */
const soonMs = 150

/** A run that waits for a limit and counts its calls. */
class Parked implements ParkedRun {
  readonly handler = 'a'
  readonly call: Call
  resumed = 0
  abandoned = 0

  constructor(call: Call) {
    this.call = call
  }

  resume(): void {
    this.resumed++
    // The attempt must not continue.
    if (this.call.attempt.aborted) this.call.finish({ status: 'retry', delayMs: 0, completed: [], failures: [] })
  }

  abandon(): void {
    this.abandoned++
  }
}

/** Checks that attempts can wait for a handler's limit without holding a slot. */
export function checkLimits(checkInbox: Check): void {
  const check = (name: string, run: (check: InboxCheck) => Promise<void>) => checkInbox(name, run, 'limits')

  /** Accepts an event and parks its attempt. Returns `undefined` if the inbox wants it back. */
  const park = async ({ inbox, calls }: InboxCheck, key: string, media?: string): Promise<Parked | undefined> => {
    await inbox.accept(eventOf(key, media))
    const call = await calls.next()
    const parked = new Parked(call)
    if (call.attempt.park?.(parked)) return parked
    call.finish({ status: 'retry', delayMs: 600_000, completed: [], failures: [], counts: false })
    return undefined
  }

  check('makes attempts while any number of others wait for the limit of a handler', async (subject) => {
    const { inbox, calls, expect } = subject
    const parked: Parked[] = []
    for (let event = 0; event < many; event++) {
      const run = await park(subject, `limited ${event}`)
      if (run !== undefined) parked.push(run)
    }
    expect(parked.length > 0).toBe(true)
    await inbox.accept(eventOf('free'))
    const free = await calls.next()
    expect(free.event.key).toBe('free')
    await until(async () => (await inbox.stats()).running === 1)
    const { waiting, retrying } = await inbox.stats()
    // Those that went back to the storage wait, or have a time of their own.
    expect([waiting + retrying, waiting >= parked.length]).toEqual([many, true])
    free.finish()
  })

  check('resumes an attempt in its turn, which goes on where it was', async (subject) => {
    const { inbox, expect } = subject
    const parked = await park(subject, 'limited')
    parked?.call.attempt.unpark?.()
    parked?.call.attempt.unpark?.()
    await until(async () => parked?.resumed === 1)
    const { waiting, running } = await inbox.stats()
    expect({ waiting, running }).toEqual({ waiting: 0, running: 1 })
    // It may wait again, for another handler.
    expect(parked?.call.attempt.park?.(parked)).toBe(true)
    parked?.call.attempt.unpark?.()
    await until(async () => parked?.resumed === 2)
    parked?.call.finish()
    await until(async () => (await inbox.stats()).running === 0)
    expect(await inbox.accept(eventOf('limited'))).toBe('duplicate')
  })

  check('keeps later events of the media item waiting behind an attempt that waits', async (subject) => {
    const { inbox, calls, ordered, expect } = subject
    const parked = await park(subject, 'first', 'media')
    await inbox.accept(eventOf('second', 'media'))
    await new Promise((resolve) => setTimeout(resolve, soonMs))
    if (ordered) expect(calls.hasStarted).toBe(false)
    parked?.call.attempt.unpark?.()
    await until(async () => parked?.resumed === 1)
    parked?.call.finish()
    expect((await calls.next()).event.key).toBe('second')
  })

  check('lets no later event of its media item pass one that goes back until its turn', async (subject) => {
    const { inbox, calls, ordered, expect } = subject
    // So many wait that a database takes the next one back.
    for (let event = 0; event < many; event++) await park(subject, `limited ${event}`)
    for (const key of ['first', 'second', 'third']) await inbox.accept(eventOf(key, 'media'))
    const call = await calls.next()
    const parked = new Parked(call)
    const isParked = call.attempt.park?.(parked)
    if (!isParked) call.finish({ status: 'retry', delayMs: 300, completed: [], failures: [], counts: false })
    await new Promise((resolve) => setTimeout(resolve, soonMs))
    if (ordered) expect(calls.hasStarted).toBe(false)
    call.attempt.unpark?.()
    const again = isParked ? call : await calls.next()
    again.finish()
    const [second, third] = [await calls.next(), calls.hasStarted]
    expect([again.event.key, again.attempt.number, second.event.key, third]).toEqual(['first', 1, 'second', false])
  })

  check(
    'makes the attempt again when it is given back until its turn, and counts none',
    async ({ inbox, calls, expect }) => {
      await inbox.accept({ ...eventOf('one'), receivedAt: new Date() })
      const startedAt = performance.now()
      ;(await calls.next()).finish({ status: 'retry', delayMs: 100, completed: ['b'], failures: [], counts: false })
      const { attempt } = await calls.next()
      const afterMs = performance.now() - startedAt
      expect([afterMs > 90, afterMs < 20_000]).toEqual([true, true])
      expect([attempt.number, attempt.completed]).toEqual([1, ['b']])
    },
  )

  check('ends the wait when it closes, and reports no running event', async (subject) => {
    const { inbox, expect } = subject
    const parked = await park(subject, 'limited')
    const { unfinished } = await inbox.close({ timeoutMs: 100 })
    expect(parked?.abandoned).toBe(1)
    // Other processes may continue it.
    expect(unfinished.filter(({ state }) => state !== 'waiting')).toEqual([])
  })

  const checkPauses = (name: string, run: (check: InboxCheck, pauses: Pauses) => Promise<void>) =>
    check(name, async (subject) => {
      if (subject.inbox.pauses !== undefined) await run(subject, subject.inbox.pauses)
    })

  checkPauses('ends the wait for a handler that is paused', async (subject, pauses) => {
    const parked = await park(subject, 'limited')
    await pauses.pause({ handler: 'b' })
    await pauses.pause({ handler: 'a' })
    await until(async () => parked?.resumed === 1)
    subject.expect(parked?.call.attempt.isPaused?.('a')).toBe(true)
  })

  checkPauses('resumes no attempt while it is paused, and loses none', async (subject, pauses) => {
    const { calls, expect } = subject
    const parked = await park(subject, 'limited')
    await pauses.pause()
    await new Promise((resolve) => setTimeout(resolve, soonMs))
    parked?.call.attempt.unpark?.()
    await new Promise((resolve) => setTimeout(resolve, soonMs))
    expect([parked?.resumed, calls.hasStarted]).toEqual([0, false])
    await pauses.resume()
    // The inbox may have given the event back meanwhile.
    await until(async () => parked?.resumed === 1)
    const isNewAttempt = parked?.call.attempt.aborted
    const { event, attempt } = isNewAttempt ? await calls.next() : (parked as Parked).call
    expect([event.key, attempt.number]).toEqual(['limited', 1])
  })
}
