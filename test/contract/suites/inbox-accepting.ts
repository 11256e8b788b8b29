import { eventOf, until } from '../../support/inbox.ts'
import { type Check, texts } from './inbox-check.ts'

/** Checks that an event is accepted once, whatever state it is in when it is delivered again. */
export function checkAccepting(check: Check): void {
  const checkDuplicates: Check = (name, run) => check(name, run, 'keepsEvents')

  check('accepts an event and hands it over as it was given', async ({ inbox, calls, expect }) => {
    const accepted = eventOf('one')
    expect(await inbox.accept(accepted)).toBe('accepted')
    const call = await calls.next()
    expect(call.event).toEqual(accepted.event)
    expect(call.receivedAt).toEqual(accepted.receivedAt)
    expect(call.attempt.number).toBe(1)
    expect(call.attempt.completed).toEqual([])
    expect(call.attempt.aborted).toBe(false)
  })

  check('keeps events apart, whatever the texts of their keys are', async ({ inbox, calls, expect }) => {
    const keys: string[] = []
    for (const text of texts) {
      expect(await inbox.accept(eventOf(text))).toBe('accepted')
      const call = await calls.next()
      keys.push(call.event.key)
      call.finish()
    }
    expect(keys).toEqual(texts)
  })

  checkDuplicates('answers duplicate to an event that is running', async ({ inbox, calls, expect }) => {
    await inbox.accept(eventOf('one'))
    await calls.next()
    expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
  })

  checkDuplicates('answers duplicate to an event that is waiting', async ({ inbox, calls, expect }) => {
    await inbox.accept(eventOf('first', 'media'))
    const first = await calls.next()
    await inbox.accept(eventOf('second', 'media'))
    expect(await inbox.accept(eventOf('second', 'media'))).toBe('duplicate')
    first.finish()
    const second = await calls.next()
    expect(second.event.key).toBe('second')
  })

  checkDuplicates('answers duplicate to an event that waits for its retry', async ({ inbox, calls, expect }) => {
    await inbox.accept(eventOf('one'))
    const call = await calls.next()
    call.finish({ status: 'retry', delayMs: 60_000, completed: [], failures: [] })
    await until(async () => (await inbox.stats()).retrying === 1)
    expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
  })

  checkDuplicates(
    'answers duplicate to an event that was handled, and does not hand it over again',
    async (subject) => {
      const { inbox, calls, expect } = subject
      await inbox.accept(eventOf('one'))
      const call = await calls.next()
      call.finish()
      await until(async () => (await inbox.stats()).running === 0)
      expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
      await inbox.accept(eventOf('two'))
      const next = await calls.next()
      expect(next.event.key).toBe('two')
    },
  )

  checkDuplicates('accepts one of 20 concurrent deliveries of one event', async ({ inbox, calls, expect }) => {
    const acceptances = await Promise.all(Array.from({ length: 20 }, () => inbox.accept(eventOf('one'))))
    expect(acceptances.filter((acceptance) => acceptance === 'accepted').length).toBe(1)
    expect(acceptances.filter((acceptance) => acceptance === 'duplicate').length).toBe(19)
    const call = await calls.next()
    call.finish()
    await inbox.accept(eventOf('two'))
    const next = await calls.next()
    expect(next.event.key).toBe('two')
  })

  check('accepts a list of events in its order, or one after the other', async ({ inbox, calls, expect }) => {
    await inbox.accept(eventOf('known', 'media'))
    const list = ['first', 'second'].map((key) => eventOf(key, 'media'))
    if (inbox.acceptAll === undefined) return
    expect(await inbox.acceptAll([...list, eventOf('known', 'media')])).toEqual(['accepted', 'accepted', 'duplicate'])
    const keys: string[] = []
    while (keys.length < 3) {
      const call = await calls.next()
      keys.push(call.event.key)
      call.finish()
    }
    expect(keys).toEqual(['known', 'first', 'second'])
    expect(await inbox.acceptAll(list)).toEqual(['duplicate', 'duplicate'])
  })

  check('distinguishes keys with any characters', async ({ inbox, calls, expect }) => {
    const keys = ['a', 'A', 'a ', 'a:b', ':', 'é', 'e\u0301', '🎬', '__proto__', '["x",null]', 'x'.repeat(256)]
    for (const key of keys) expect(await inbox.accept(eventOf(key))).toBe('accepted')
    const handled: string[] = []
    while (handled.length < keys.length) {
      const call = await calls.next()
      handled.push(call.event.key)
      call.finish()
    }
    expect(handled.toSorted()).toEqual(keys.toSorted())
  })
}
