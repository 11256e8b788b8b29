import type { AttemptResult } from '../../../src/inbox/inbox.ts'
import { type Call, eventOf, until } from '../../support/inbox.ts'
import type { Check, InboxCheck } from './inbox-check.ts'

const failures = [{ handler: 'b', message: 'Error: no' }]
const retryIn = (delayMs: number): AttemptResult => ({ status: 'retry', delayMs, completed: [], failures })
const soon = retryIn(300)
const released: AttemptResult = { status: 'retry', delayMs: 0, completed: [], failures: [], counts: false }
const media = 'media'

/** Accepts events of one media item and returns the attempt at the first. */
async function first({ inbox, calls }: InboxCheck, ...keys: readonly string[]): Promise<Call> {
  // Received now: the older an event, the longer its release.
  for (const key of keys) await inbox.accept({ ...eventOf(key, media), receivedAt: new Date() })
  return calls.next()
}

/** Handles attempts until `count` events were handled. Returns their keys in order. */
async function handledKeys({ calls }: InboxCheck, count: number): Promise<string[]> {
  const keys: string[] = []
  while (keys.length < count) {
    const call = await calls.next()
    keys.push(call.event.key)
    call.finish()
  }
  return keys
}

/** Handles the next attempt. Returns its event's key, and whether the event came late. */
async function next({ calls }: InboxCheck, result?: AttemptResult): Promise<readonly [string, boolean]> {
  const { event, finish } = await calls.next()
  finish(result)
  return [event.key, event.late === true]
}

/** Checks that a strictly ordered inbox lets no event overtake an earlier one of its media item. */
export function checkOrder(checkInbox: Check): void {
  const check = (name: string, run: (subject: InboxCheck) => Promise<void>) => checkInbox(name, run, 'strict')

  check('holds the events of a media item back while an earlier one waits for its retry', async (subject) => {
    const call = await first(subject, 'one', 'two')
    call.finish(soon)
    await subject.inbox.accept(eventOf('three', media))
    subject.expect(await handledKeys(subject, 3)).toEqual(['one', 'two', 'three'])
  })

  check('holds what is accepted during the wait back, and no other media item', async (subject) => {
    const { inbox, expect } = subject
    const call = await first(subject, 'one')
    call.finish(retryIn(1_000))
    await until(async () => (await inbox.stats()).retrying === 1)
    await inbox.accept(eventOf('two', media))
    await inbox.accept(eventOf('other', 'other'))
    expect(await handledKeys(subject, 3)).toEqual(['other', 'one', 'two'])
  })

  check('holds them back through every retry, and until its handlers could run', async (subject) => {
    const { calls, expect } = subject
    let call = await first(subject, 'one', 'two')
    for (const result of [soon, released, soon]) {
      call.finish(result)
      call = await calls.next()
      expect(call.event.key).toBe('one')
    }
    call.finish()
    expect(await handledKeys(subject, 1)).toEqual(['two'])
  })

  check('lets them go on once it is a dead letter', async (subject) => {
    const { inbox, calls, expect } = subject
    const call = await first(subject, 'one', 'two')
    call.finish(soon)
    const again = await calls.next()
    again.finish({ status: 'dead', completed: [], failures })
    expect(await handledKeys(subject, 1)).toEqual(['two'])
    await until(async () => (await inbox.stats()).deadLetters === 1)
    expect(await inbox.deadLetters.replay('one')).toBe(true)
    expect(await handledKeys(subject, 1)).toEqual(['one'])
  })

  check('keeps the order of many media items whose events fail', async (subject) => {
    const { inbox, calls, expect } = subject
    const [items, each] = [6, 5]
    for (let event = 0; event < each; event++)
      for (let item = 0; item < items; item++) await inbox.accept(eventOf(`${item} ${event}`, `media ${item}`))
    const handled: string[] = []
    while (handled.length < items * each) {
      const call = await calls.next()
      const { key } = call.event
      // Every other event fails once.
      const fails = Number(key.at(-1)) % 2 === 0 && call.attempt.number === 1
      if (!fails) handled.push(key)
      call.finish(fails ? retryIn(20) : undefined)
    }
    for (let item = 0; item < items; item++) {
      const keys = handled.filter((key) => key.startsWith(`${item} `))
      expect(keys).toEqual(Array.from({ length: each }, (_, event) => `${item} ${event}`))
    }
  })
}

/** Checks that an inbox tells what is late. */
export function checkLate(checkInbox: Check): void {
  checkInbox(
    'tells that an event is late, in every attempt, if one of a later time was tried before it',
    async (subject) => {
      const { inbox, expect } = subject
      const accept = (key: string, emittedAt: Date | undefined, mediaId = media) => {
        const { event, receivedAt } = eventOf(key, mediaId)
        return inbox.accept({ event: { ...event, emittedAt }, receivedAt })
      }
      await accept('second', new Date(2_000))
      expect(await next(subject, retryIn(20))).toEqual(['second', false])
      expect(await next(subject)).toEqual(['second', false])
      await accept('first', new Date(1_000))
      await accept('again', new Date(2_000))
      await accept('timeless', undefined)
      expect(await next(subject, retryIn(20))).toEqual(['first', true])
      const others = new Map([await next(subject), await next(subject), await next(subject)])
      expect(Object.fromEntries(others)).toEqual({ first: true, again: false, timeless: false })
      await accept('of another media item', new Date(1_000), 'other')
      expect(await next(subject)).toEqual(['of another media item', false])
    },
    'late',
  )
}
