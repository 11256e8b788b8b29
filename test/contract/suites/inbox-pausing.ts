import type { Operations, Pauses } from '../../../src/inbox/reading.ts'
import { type Calls, eventOf, until } from '../../support/inbox.ts'
import { type Check, codeOf, type InboxCheck } from './inbox-check.ts'

/** How long to watch for an attempt that must not start (ms). */
const soonMs = 150

interface PausingCheck extends InboxCheck {
  readonly pauses: Pauses
  /** Returns `true` if no attempt starts for a while. */
  isQuiet(): Promise<boolean>
}

export function checkPausing(checkInbox: Check): void {
  const check = (name: string, run: (check: PausingCheck) => Promise<void>) =>
    checkInbox(
      name,
      (subject) => run({ ...subject, pauses: subject.inbox.pauses as Pauses, isQuiet: quietnessOf(subject.calls) }),
      'pauses',
    )

  check('begins no attempt while it is paused, and goes on when it is resumed', async (subject) => {
    const { inbox, pauses, calls, isQuiet, expect } = subject
    const before = Date.now()
    expect(await pauses.pause({ by: 'ana' })).toBe(true)
    const [pause] = await pauses.list()
    expect([pause?.handler, pause?.by]).toEqual([undefined, 'ana'])
    expect(Math.abs(Number(pause?.since) - before) < 60_000).toBe(true)
    expect(await inbox.accept(eventOf('one'))).toBe('accepted')
    expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
    expect(await isQuiet()).toBe(true)
    const { waiting, running } = await inbox.stats()
    expect({ waiting, running }).toEqual({ waiting: 1, running: 0 })
    expect(await pauses.resume()).toBe(true)
    expect(await pauses.list()).toEqual([])
    const call = await calls.next()
    expect([call.event.key, call.attempt.number]).toEqual(['one', 1])
  })

  check('lets a running attempt finish while it is paused, and keeps the order', async (subject) => {
    const { inbox, pauses, calls, ordered, isQuiet, expect } = subject
    await inbox.accept(eventOf('first', 'media'))
    const first = await calls.next()
    await pauses.pause()
    expect(first.attempt.aborted).toBe(false)
    await inbox.accept(eventOf('second', 'media'))
    if (ordered) await inbox.accept(eventOf('third', 'media'))
    first.finish()
    await until(async () => (await inbox.stats()).running === 0)
    expect(await isQuiet()).toBe(true)
    await pauses.resume()
    const second = await calls.next()
    expect(second.event.key).toBe('second')
    second.finish()
    if (ordered) expect((await calls.next()).event.key).toBe('third')
  })

  check('makes no retry while it is paused', async ({ inbox, pauses, calls, isQuiet, expect }) => {
    await inbox.accept(eventOf('one'))
    const first = await calls.next()
    await pauses.pause()
    first.finish({ status: 'retry', delayMs: 5, completed: ['a'], failures: [] })
    expect(await isQuiet()).toBe(true)
    await pauses.resume()
    const second = await calls.next()
    expect([second.attempt.number, second.attempt.completed]).toEqual([2, ['a']])
  })

  check('tells attempts which handlers are paused, and does not count those that left one out', async (subject) => {
    const { inbox, pauses, calls, expect } = subject
    expect(await pauses.pause({ handler: 'a', by: 'ana' })).toBe(true)
    expect((await pauses.list()).map(({ handler, by }) => [handler, by])).toEqual([['a', 'ana']])
    // A new event is released for about a second.
    await inbox.accept({ ...eventOf('one'), receivedAt: new Date() })
    const first = await calls.next()
    expect(['a', 'b'].map((handler) => first.attempt.isPaused?.(handler))).toEqual([true, false])
    first.finish({ status: 'retry', delayMs: 0, completed: ['b'], failures: [], counts: false })
    const second = await calls.next()
    expect([second.attempt.number, second.attempt.completed]).toEqual([1, ['b']])
    expect(second.attempt.failures ?? []).toEqual([])
    expect(second.attempt.isPaused?.('a')).toBe(true)
    expect(await pauses.resume({ handler: 'a' })).toBe(true)
    await until(async () => second.attempt.isPaused?.('a') === false)
  })

  check('lets later events of a media item pass one that waits for its paused handlers', async (subject) => {
    const { inbox, pauses, calls, expect } = subject
    await pauses.pause({ handler: 'a' })
    // An old event is released for a minute.
    await inbox.accept(eventOf('old', 'media'))
    const old = await calls.next()
    old.finish({ status: 'retry', delayMs: 0, completed: ['b'], failures: [], counts: false })
    await inbox.accept(eventOf('later', 'media'))
    const later = await calls.next()
    expect(later.event.key).toBe('later')
    later.finish()
    await until(async () => (await inbox.stats()).running === 0)
    const { waiting, retrying } = await inbox.stats()
    expect({ waiting, retrying }).toEqual({ waiting: 0, retrying: 1 })
  })

  check('pauses nothing twice, and resumes only what is paused', async ({ pauses, expect }) => {
    expect(await pauses.resume()).toBe(false)
    expect(await pauses.pause({ by: 'ana' })).toBe(true)
    // Another process may know the handler.
    expect(await pauses.pause({ handler: 'unknown' })).toBe(true)
    const paused = await pauses.list()
    expect(paused.map(({ handler }) => handler).toSorted()).toEqual(['unknown', undefined])
    expect(await pauses.pause({ by: 'ben' })).toBe(false)
    expect(await pauses.pause({ handler: 'unknown', by: 'ben' })).toBe(false)
    expect(await pauses.list()).toEqual(paused)
    expect(await pauses.resume({ handler: 'other' })).toBe(false)
    expect(await pauses.resume()).toBe(true)
    expect(await pauses.resume()).toBe(false)
    expect((await pauses.list()).map(({ handler }) => handler)).toEqual(['unknown'])
    expect(await codeOf(() => pauses.pause({ handler: '' }))).toBe('invalid_option')
  })

  check('closes while it is paused without waiting for what cannot start', async ({ inbox, pauses, expect }) => {
    await pauses.pause()
    await inbox.accept(eventOf('one'))
    const startedAt = performance.now()
    const { unfinished } = await inbox.close({ timeoutMs: 60_000 })
    expect(performance.now() - startedAt < 20_000).toBe(true)
    expect(unfinished.filter(({ state }) => state !== 'waiting')).toEqual([])
  })

  check('keeps what operators did, the newest first, and finds it by event', async ({ inbox, expect }) => {
    const operations = inbox.operations as Operations
    const before = Date.now()
    await operations.add({ act: 'replay', by: 'ana', keys: ['one', 'two'], cause: 'c1', reason: "it's fixed" })
    await operations.add({ act: 'pause', handler: 'publish' })
    await operations.add({ act: 'discard', keys: ['two'] })
    const all = await operations.list()
    expect(all.map(({ act, count }) => [act, count])).toEqual([
      ['discard', 1],
      ['pause', undefined],
      ['replay', 2],
    ])
    const [, pause, replay] = all
    expect([pause?.handler, pause?.by]).toEqual(['publish', undefined])
    expect([replay?.by, replay?.cause, replay?.reason]).toEqual(['ana', 'c1', "it's fixed"])
    expect(Math.abs(Number(replay?.at) - before) < 60_000).toBe(true)
    const actsOn = async (key: string) => (await operations.list({ key })).map(({ act }) => act)
    expect([await actsOn('one'), await actsOn('two'), await actsOn('three')]).toEqual([
      ['replay'],
      ['discard', 'replay'],
      [],
    ])
    expect((await operations.list({ limit: 1 })).map(({ act }) => act)).toEqual(['discard'])
  })
}

const quietnessOf = (calls: Calls) => async (): Promise<boolean> => {
  await new Promise((resolve) => setTimeout(resolve, soonMs))
  return !calls.hasStarted
}
