import { countsOf, eventOf, until } from '../../support/inbox.ts'
import type { Check } from './inbox-check.ts'

export function checkHandling(check: Check): void {
  check(
    'hands over the events of one media item one after another, in order',
    async ({ inbox, calls, expect }) => {
      const keys = ['1', '2', '3', '4', '5']
      for (const key of keys) await inbox.accept(eventOf(key, 'media'))
      for (const key of keys) {
        const call = await calls.next()
        expect(call.event.key).toBe(key)
        // An event of another media item starts at once, before the next one of this media item.
        await inbox.accept(eventOf(`witness of ${key}`))
        const witness = await calls.next()
        expect(witness.event.key).toBe(`witness of ${key}`)
        witness.finish()
        call.finish()
      }
    },
    'ordered',
  )

  check('handles different media items at the same time', async ({ inbox, calls, expect }) => {
    for (const key of ['one', 'two', 'three', 'four']) await inbox.accept(eventOf(key))
    const running = [await calls.next(), await calls.next(), await calls.next(), await calls.next()]
    expect(running.map(({ event }) => event.key).toSorted()).toEqual(['four', 'one', 'three', 'two'])
  })

  check('hands an event over again after the delay, with the handlers that have completed', async (subject) => {
    const { inbox, calls, expect } = subject
    await inbox.accept(eventOf('one'))
    const first = await calls.next()
    first.finish({ status: 'retry', delayMs: 10, completed: ['a'], failures: [] })
    const second = await calls.next()
    expect(second.event).toEqual(first.event)
    expect(second.receivedAt).toEqual(first.receivedAt)
    expect(second.attempt.number).toBe(2)
    expect(second.attempt.completed).toEqual(['a'])
    second.finish({ status: 'retry', delayMs: 10, completed: ['a', 'b'], failures: [] })
    const third = await calls.next()
    expect(third.attempt.number).toBe(3)
    expect(third.attempt.completed).toEqual(['a', 'b'])
  })

  check(
    'hands an event over again with the failures of its last attempt that failed, until it is replayed',
    async ({ inbox, calls, expect }) => {
      const failures = [
        { handler: 'a', message: 'Error: no' },
        { handler: 'b', message: 'PermanentFailure: never', final: true },
      ] as const
      await inbox.accept(eventOf('one'))
      const first = await calls.next()
      expect(first.attempt.failures ?? []).toEqual([])
      first.finish({ status: 'retry', delayMs: 10, completed: [], failures })
      const second = await calls.next()
      expect(second.attempt.failures).toEqual(failures)
      // For example, the inbox took it back: no handler failed.
      second.finish({ status: 'retry', delayMs: 10, completed: ['a'], failures: [] })
      const third = await calls.next()
      expect(third.attempt.failures).toEqual(failures)
      const last = [{ handler: 'b', message: 'PermanentFailure: never' }]
      third.finish({ status: 'dead', completed: ['a'], failures: last })
      await until(async () => (await inbox.stats()).deadLetters === 1)
      await inbox.deadLetters.replay('one')
      const replayed = await calls.next()
      expect((replayed.attempt.failures ?? []).some(({ final }) => final === true)).toBe(false)
    },
    'keepsEvents',
  )

  check('does not hand an event over again before the delay is over', async ({ inbox, calls, expect }) => {
    await inbox.accept(eventOf('one'))
    const first = await calls.next()
    const failedAt = performance.now()
    first.finish({ status: 'retry', delayMs: 250, completed: [], failures: [] })
    await calls.next()
    // Timers may fire a millisecond early.
    expect(performance.now() - failedAt >= 248).toBe(true)
  })

  check('does not let an event that waits for its retry hold up the next of its media item', async (subject) => {
    const { inbox, calls, expect } = subject
    await inbox.accept(eventOf('first', 'media'))
    const first = await calls.next()
    await inbox.accept(eventOf('second', 'media'))
    first.finish({ status: 'retry', delayMs: 150, completed: [], failures: [] })
    const second = await calls.next()
    expect(second.event.key).toBe('second')
    second.finish()
    const again = await calls.next()
    expect(again.event.key).toBe('first')
  })

  const countsEvents: Parameters<Check>[1] = async ({ inbox, calls, ordered, expect }) => {
    expect(await countsOf(inbox)).toEqual({ waiting: 0, running: 0, retrying: 0, deadLetters: 0 })
    await inbox.accept(eventOf('dead'))
    const dead = await calls.next()
    dead.finish({ status: 'dead', completed: [], failures: [] })
    await inbox.accept(eventOf('retrying'))
    const retrying = await calls.next()
    retrying.finish({ status: 'retry', delayMs: 60_000, completed: [], failures: [] })
    await until(async () => (await inbox.stats()).running === 0)
    await inbox.accept(eventOf('running', 'media'))
    const running = await calls.next()
    if (ordered) await inbox.accept(eventOf('waiting', 'media'))
    expect(await countsOf(inbox)).toEqual({ waiting: ordered ? 1 : 0, running: 1, retrying: 1, deadLetters: 1 })
    running.finish()
    if (ordered) (await calls.next()).finish()
    await until(async () => (await inbox.stats()).running === 0)
    expect(await countsOf(inbox)).toEqual({ waiting: 0, running: 0, retrying: 1, deadLetters: 1 })
  }
  check('counts its events', countsEvents, 'keepsEvents')
}
