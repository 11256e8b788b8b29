import type { Inbox } from '../../../src/inbox/inbox.ts'
import { type Calls, countsOf, eventOf, until } from '../../support/inbox.ts'
import type { Check } from './inbox-check.ts'

const failures = [{ handler: 'b', message: 'Error: no' }]

/** Accepts an event that becomes a dead letter at its first attempt. Its handler `a` succeeded. */
async function makeDeadLetter(inbox: Inbox, calls: Calls, key: string): Promise<void> {
  await inbox.accept(eventOf(key))
  const call = await calls.next()
  call.finish({ status: 'dead', completed: ['a'], failures })
  await until(async () => (await inbox.deadLetters.get(key)) !== undefined && (await inbox.stats()).running === 0)
}

export function checkDeadLetters(checkInbox: Check): void {
  const check: Check = (name, run) => checkInbox(name, run, 'keepsEvents')

  check('keeps an event that could not be handled as a dead letter', async ({ inbox, calls, expect }) => {
    const accepted = eventOf('one')
    await inbox.accept(accepted)
    const first = await calls.next()
    first.finish({ status: 'retry', delayMs: 5, completed: ['a'], failures: [] })
    const second = await calls.next()
    second.finish({ status: 'dead', completed: ['a'], failures })
    await until(async () => (await inbox.stats()).deadLetters === 1)
    const deadLetter = await inbox.deadLetters.get('one')
    expect(deadLetter?.key).toBe('one')
    expect(deadLetter?.event).toEqual(accepted.event)
    expect(deadLetter?.receivedAt).toEqual(accepted.receivedAt)
    expect(deadLetter?.attempts).toBe(2)
    expect(deadLetter?.completed).toEqual(['a'])
    expect(deadLetter?.failures).toEqual(failures)
    expect(deadLetter?.diedAt instanceof Date).toBe(true)
    expect(await inbox.deadLetters.list()).toEqual([deadLetter])
  })

  check('lists the newest dead letters first, page by page', async ({ inbox, calls, expect }) => {
    // Twelve: some storages order the tenth before the second.
    const all = Array.from({ length: 12 }, (_, index) => `${index + 1}`)
    for (const key of all) await makeDeadLetter(inbox, calls, key)
    const keys = async (options?: { limit?: number; offset?: number }) =>
      (await inbox.deadLetters.list(options)).map(({ key }) => key)
    expect(await keys()).toEqual(all.toReversed())
    expect(await keys({ limit: 2 })).toEqual(['12', '11'])
    expect(await keys({ limit: 4, offset: 2 })).toEqual(['10', '9', '8', '7'])
    expect(await keys({ offset: 12 })).toEqual([])
  })

  check('answers duplicate to a dead letter that is delivered again', async ({ inbox, calls, expect }) => {
    await makeDeadLetter(inbox, calls, 'one')
    expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
  })

  check('replays a dead letter with fresh attempts, without the handlers that have completed', async (subject) => {
    const { inbox, calls, expect } = subject
    await makeDeadLetter(inbox, calls, 'one')
    expect(await inbox.deadLetters.replay('one')).toBe(true)
    const call = await calls.next()
    expect(call.event).toEqual(eventOf('one').event)
    expect(call.attempt.number).toBe(1)
    expect(call.attempt.completed).toEqual(['a'])
    expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
    call.finish()
    await until(async () => (await inbox.stats()).running === 0)
    expect(await inbox.deadLetters.get('one')).toBe(undefined)
    expect(await countsOf(inbox)).toEqual({ waiting: 0, running: 0, retrying: 0, deadLetters: 0 })
    expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
  })

  check('lets one of two concurrent replays win', async ({ inbox, calls, expect }) => {
    await makeDeadLetter(inbox, calls, 'one')
    const replay = async () => inbox.deadLetters.replay('one')
    expect((await Promise.all([replay(), replay()])).toSorted()).toEqual([false, true])
    const call = await calls.next()
    call.finish()
    await inbox.accept(eventOf('two'))
    const next = await calls.next()
    expect(next.event.key).toBe('two')
  })

  check('keeps a replayed event that fails permanently as a dead letter again', async ({ inbox, calls, expect }) => {
    await makeDeadLetter(inbox, calls, 'one')
    await inbox.deadLetters.replay('one')
    const first = await calls.next()
    first.finish({ status: 'retry', delayMs: 5, completed: ['a'], failures: [] })
    const second = await calls.next()
    expect(second.attempt.number).toBe(2)
    second.finish({ status: 'dead', completed: ['a'], failures })
    await until(async () => (await inbox.stats()).deadLetters === 1)
    const deadLetter = await inbox.deadLetters.get('one')
    expect(deadLetter?.attempts).toBe(2)
  })

  check('discards a dead letter', async ({ inbox, calls, expect }) => {
    await makeDeadLetter(inbox, calls, 'one')
    expect(await inbox.deadLetters.discard('one')).toBe(true)
    expect(await inbox.deadLetters.get('one')).toBe(undefined)
    expect(await inbox.deadLetters.list()).toEqual([])
    expect(await inbox.deadLetters.replay('one')).toBe(false)
    expect(await inbox.deadLetters.discard('one')).toBe(false)
  })

  check('has no dead letter for a key that it has not seen', async ({ inbox, expect }) => {
    expect(await inbox.deadLetters.get('unknown')).toBe(undefined)
    expect(await inbox.deadLetters.replay('unknown')).toBe(false)
    expect(await inbox.deadLetters.discard('unknown')).toBe(false)
  })
}
