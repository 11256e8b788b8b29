import type { Pauses } from '../../../src/inbox/reading.ts'
import { type Call, eventOf, until } from '../../support/inbox.ts'
import type { Check, InboxCheck } from './inbox-check.ts'

/** More events than an inbox under test runs at a time. */
const many = 40

/** How long to watch for an attempt that must not start (ms). */
const soonMs = 150

/** An attempt that waits for a limit, and counts how often it goes on. */
class Waiting {
  readonly call: Call
  resumed = 0
  /** Says that its turn has come. */
  come = (): void => {}

  constructor(call: Call) {
    this.call = call
  }

  /** Returns `false` if the inbox wants the event back. */
  wait(): boolean {
    const { attempt } = this.call
    const turn = new Promise<void>((resolve) => {
      this.come = resolve
      attempt.signal.addEventListener('abort', () => resolve())
    })
    const waiting = attempt.whileWaiting?.(turn)
    if (waiting === undefined) return false
    const { finish } = this.call
    // It ends only once it has a slot again.
    this.call.finish = (result) => {
      this.come()
      void waiting.then(() => finish(result))
    }
    void waiting.then(() => {
      this.resumed++
      // It must not continue.
      if (attempt.aborted) finish({ status: 'retry', delayMs: 0, completed: [], failures: [] })
    })
    return true
  }
}

/** Checks that attempts can wait for a handler's limit without holding a slot. */
export function checkLimits(checkInbox: Check): void {
  const check = (name: string, run: (check: InboxCheck) => Promise<void>) => checkInbox(name, run, 'limits')

  /** Accepts an event and lets its attempt wait. Returns `undefined` if the inbox wants it back. */
  const wait = async ({ inbox, calls }: InboxCheck, key: string, media?: string): Promise<Waiting | undefined> => {
    await inbox.accept(eventOf(key, media))
    const call = await calls.next()
    const limited = new Waiting(call)
    if (limited.wait()) return limited
    call.finish({ status: 'retry', delayMs: 600_000, completed: [], failures: [], counts: false })
    return undefined
  }

  check('makes attempts while any number of others wait for the limit of a handler', async (subject) => {
    const { inbox, calls, expect } = subject
    const limited: Waiting[] = []
    for (let event = 0; event < many; event++) {
      const run = await wait(subject, `limited ${event}`)
      if (run !== undefined) limited.push(run)
    }
    expect(limited.length > 0).toBe(true)
    await inbox.accept(eventOf('free'))
    const free = await calls.next()
    expect(free.event.key).toBe('free')
    await until(async () => (await inbox.stats()).running === 1)
    const { waiting, retrying } = await inbox.stats()
    // Those that went back to the storage wait, or have a time of their own.
    expect([waiting + retrying, waiting >= limited.length]).toEqual([many, true])
    free.finish()
  })

  check('resumes an attempt in its turn, which goes on where it was', async (subject) => {
    const { inbox, expect } = subject
    const limited = await wait(subject, 'limited')
    limited?.come()
    limited?.come()
    await until(async () => limited?.resumed === 1)
    const { waiting, running } = await inbox.stats()
    expect({ waiting, running }).toEqual({ waiting: 0, running: 1 })
    // It may wait again, for another handler.
    expect(limited?.wait()).toBe(true)
    limited?.come()
    await until(async () => limited?.resumed === 2)
    limited?.call.finish()
    await until(async () => (await inbox.stats()).running === 0)
    expect(await inbox.accept(eventOf('limited'))).toBe('duplicate')
  })

  check('keeps later events of the media item waiting behind an attempt that waits', async (subject) => {
    const { inbox, calls, ordered, expect } = subject
    const limited = await wait(subject, 'first', 'media')
    await inbox.accept(eventOf('second', 'media'))
    await new Promise((resolve) => setTimeout(resolve, soonMs))
    if (ordered) expect(calls.hasStarted).toBe(false)
    limited?.come()
    await until(async () => limited?.resumed === 1)
    limited?.call.finish()
    expect((await calls.next()).event.key).toBe('second')
  })

  check('lets no later event of its media item pass one that goes back until its turn', async (subject) => {
    const { inbox, calls, ordered, expect } = subject
    // So many wait that a database takes the next one back.
    for (let event = 0; event < many; event++) await wait(subject, `limited ${event}`)
    for (const key of ['first', 'second', 'third']) await inbox.accept(eventOf(key, 'media'))
    const call = await calls.next()
    const limited = new Waiting(call)
    const hasRoom = limited.wait()
    if (!hasRoom) call.finish({ status: 'retry', delayMs: 300, completed: [], failures: [], counts: false })
    await new Promise((resolve) => setTimeout(resolve, soonMs))
    if (ordered) expect(calls.hasStarted).toBe(false)
    limited.come()
    const again = hasRoom ? call : await calls.next()
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
    const limited = await wait(subject, 'limited')
    const { unfinished } = await inbox.close({ timeoutMs: 100 })
    expect(limited?.call.attempt.signal.aborted).toBe(true)
    // Other processes may continue it.
    expect(unfinished.filter(({ state }) => state !== 'waiting')).toEqual([])
  })

  const checkPauses = (name: string, run: (check: InboxCheck, pauses: Pauses) => Promise<void>) =>
    check(name, async (subject) => {
      if (subject.inbox.pauses !== undefined) await run(subject, subject.inbox.pauses)
    })

  checkPauses('ends the wait for a handler that is paused', async (subject, pauses) => {
    const limited = await wait(subject, 'limited')
    await pauses.pause({ handler: 'b' })
    await pauses.pause({ handler: 'a' })
    await until(async () => limited?.resumed === 1)
    subject.expect(limited?.call.attempt.isPaused?.('a')).toBe(true)
  })

  checkPauses('resumes no attempt while it is paused, and loses none', async (subject, pauses) => {
    const { calls, expect } = subject
    const limited = await wait(subject, 'limited')
    await pauses.pause()
    await new Promise((resolve) => setTimeout(resolve, soonMs))
    limited?.come()
    await new Promise((resolve) => setTimeout(resolve, soonMs))
    expect([limited?.resumed, calls.hasStarted]).toEqual([0, false])
    await pauses.resume()
    // The inbox may have given the event back meanwhile.
    await until(async () => limited?.resumed === 1)
    const isNewAttempt = limited?.call.attempt.aborted
    const { event, attempt } = isNewAttempt ? await calls.next() : (limited as Waiting).call
    expect([event.key, attempt.number]).toEqual(['limited', 1])
  })
}
