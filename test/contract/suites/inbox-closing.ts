import { eventOf, until } from '../../support/inbox.ts'
import { type Check, codeOf } from './inbox-check.ts'

export function checkClosing(check: Check): void {
  check('closes immediately when nothing is left to do', async ({ inbox, calls, expect }) => {
    await inbox.accept(eventOf('one'))
    const call = await calls.next()
    call.finish()
    expect(await inbox.close({ timeoutMs: 60_000 })).toEqual({ unfinished: [] })
  })

  check('finishes running events before it is closed', async ({ inbox, calls, expect }) => {
    await inbox.accept(eventOf('one'))
    const call = await calls.next()
    const closed = inbox.close()
    expect(await isPending(closed)).toBe(true)
    expect(call.attempt.aborted).toBe(false)
    call.finish()
    expect(await closed).toEqual({ unfinished: [] })
  })

  check('accepts no new events once it closes', async ({ inbox, calls, expect }) => {
    await inbox.accept(eventOf('one'))
    const call = await calls.next()
    const closed = inbox.close()
    expect(await codeOf(() => inbox.accept(eventOf('two')))).toBe('closing')
    call.finish()
    await closed
    expect(await codeOf(() => inbox.accept(eventOf('three')))).toBe('closing')
  })

  check('can be closed again, with the same report', async ({ inbox, calls, expect }) => {
    await inbox.accept(eventOf('one'))
    await calls.next()
    const [first, second] = await Promise.all([inbox.close({ timeoutMs: 10 }), inbox.close({ timeoutMs: 10 })])
    expect(first.unfinished.length).toBe(1)
    expect(second).toEqual(first)
    expect(await inbox.close()).toEqual(first)
  })

  check('gives up on an event that runs too long, aborts it and reports it', async ({ inbox, calls, expect }) => {
    const accepted = eventOf('one')
    await inbox.accept(accepted)
    const { attempt } = await calls.next()
    let isAborted = false
    attempt.signal.addEventListener('abort', () => {
      isAborted = true
    })
    const { unfinished } = await inbox.close({ timeoutMs: 10 })
    expect(unfinished.map(({ event, receivedAt, state }) => ({ event, receivedAt, state }))).toEqual([
      { ...accepted, state: 'running' },
    ])
    await until(async () => isAborted)
    expect(attempt.aborted).toBe(true)
    expect(attempt.signal.reason.code).toBe('closing')
  })
}

async function isPending(promise: Promise<unknown>): Promise<boolean> {
  const soon = new Promise((resolve) => setTimeout(resolve, 5, 'pending'))
  return (await Promise.race([promise, soon])) === 'pending'
}
