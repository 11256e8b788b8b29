import type { Inbox } from '../../../src/inbox/inbox.ts'
import type { DeadLetter, UnreadableDelivery } from '../../../src/inbox/reading.ts'
import { eventOf, until } from '../../support/inbox.ts'
import { type Check, codeOf, type InboxCheck } from './inbox-check.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const receivedAt = new Date('2026-03-01T12:00:01.500Z')

/** Keeps a delivery that the host cannot parse, unless its body is the key of an event in JSON. */
async function keep({ inbox }: InboxCheck, change: Partial<UnreadableDelivery> = {}): Promise<UnreadableDelivery> {
  const unreadable = { reason: 'no JSON', receivedAt, eventId: undefined, body: bytes('{'), ...change }
  await inbox.keepUnreadable?.(unreadable)
  return unreadable
}

/** Keeps a delivery that was unreadable, and that the host can parse now. Returns the key of the dead letter. */
async function keepReadable(subject: InboxCheck, key: string, change: Partial<UnreadableDelivery> = {}) {
  await keep(subject, { ...change, body: bytes(JSON.stringify(key)) })
  const [newest] = await subject.inbox.deadLetters.list()
  return newest?.key ?? 'no dead letter'
}

async function isIdle(inbox: Inbox): Promise<boolean> {
  const { waiting, running } = await inbox.stats()
  return waiting === 0 && running === 0
}

/** Waits until whatever dies next is newer. */
async function nextMillisecond(): Promise<void> {
  const now = Date.now()
  await until(async () => Date.now() > now + 1)
}

const keysOf = (letters: readonly DeadLetter[]): string[] => letters.map(({ key }) => key)

export function checkUnreadable(checkInbox: Check): void {
  const check = (name: string, run: (subject: InboxCheck) => Promise<void>) => checkInbox(name, run, 'keepsUnreadable')

  check('keeps an unreadable delivery as it was sent, as a dead letter and not as an event', async (subject) => {
    const { inbox, expect } = subject
    const body = new Uint8Array([0x7b, 0xff, 0x00, 0x7d])
    const given = { principal: 'acme', headers: { 'x-id': '1', 'x-type': null }, url: '/?id=1', body: body.slice() }
    const { reason, body: buffer } = await keep(subject, given)
    // The application may write into its buffer later.
    buffer.fill(0)
    const letters = await inbox.deadLetters.list()
    const [{ unreadable, ...letter } = {} as DeadLetter] = letters
    expect(letters.length).toBe(1)
    expect([letter.event, letter.attempts, letter.completed]).toEqual([undefined, 0, []])
    expect(letter.failures).toEqual([{ handler: 'none', message: reason }])
    expect(letter.receivedAt).toEqual(receivedAt)
    expect([...(unreadable?.body ?? [])]).toEqual([...body])
    expect([unreadable?.reason, unreadable?.principal, unreadable?.url]).toEqual([reason, 'acme', '/?id=1'])
    expect(unreadable?.headers).toEqual(given.headers)
    expect(letter.key.startsWith('unreadable:')).toBe(true)
    expect(await inbox.deadLetters.get(letter.key)).toEqual(letters[0])
    const { waiting, deadLetters } = await inbox.stats()
    expect([waiting, deadLetters]).toEqual([0, 1])
    expect((await inbox.events?.list())?.events).toEqual([])
    expect(await inbox.events?.get(letter.key)).toBe(undefined)
  })

  check('keeps one unreadable delivery, and another for each id, principal and header', async (subject) => {
    const { inbox, expect } = subject
    const changes = [{}, { eventId: '1' }, { eventId: '2' }, { principal: 'acme' }, { headers: { 'x-type': 'a' } }]
    for (const change of changes) await keep(subject, change)
    const kept = await inbox.deadLetters.list()
    expect(kept.length).toBe(changes.length)
    for (const change of changes) await keep(subject, { ...change, receivedAt: new Date() })
    expect(await inbox.deadLetters.list()).toEqual(kept)
  })

  check('lists unreadable deliveries among the dead events, newest first, page by page', async (subject) => {
    const { inbox, calls, expect } = subject
    const order: string[] = []
    for (const name of ['1', '2', '3', '4']) {
      await nextMillisecond()
      if (Number(name) % 2 === 1) order.unshift(await keepReadable(subject, name, { receivedAt: new Date() }))
      else {
        await inbox.accept(eventOf(name))
        const call = await calls.next()
        call.finish({ status: 'dead', completed: [], failures: [{ handler: 'a', message: 'no' }] })
        order.unshift(name)
      }
      await until(async () => (await inbox.stats()).deadLetters === order.length)
    }
    expect(keysOf(await inbox.deadLetters.list())).toEqual(order)
    expect(keysOf(await inbox.deadLetters.list({ limit: 2, offset: 1 }))).toEqual(order.slice(1, 3))
  })

  check('leaves an unreadable delivery as it is when it still cannot be parsed', async (subject) => {
    const { deadLetters } = subject.inbox
    await keep(subject)
    const before = await deadLetters.list()
    subject.expect(await codeOf(() => deadLetters.replay(before[0]?.key ?? ''))).toBe('malformed')
    subject.expect(await deadLetters.list()).toEqual(before)
  })

  check('handles an unreadable delivery once when it can be parsed, however many replay it', async (subject) => {
    const { inbox, calls, expect } = subject
    const trace = { traceparent: 'of the delivery' }
    const key = await keepReadable(subject, 'in the body', { eventId: 'one', principal: 'zoo', trace })
    const replay = async () => inbox.deadLetters.replay(key)
    expect((await Promise.all([replay(), replay()])).toSorted()).toEqual([false, true])
    const call = await calls.next()
    expect([call.event.key, call.event.principal, call.receivedAt]).toEqual(['one', 'zoo', receivedAt])
    expect(call.trace).toEqual(trace)
    call.finish()
    await until(() => isIdle(inbox))
    expect(await inbox.deadLetters.list()).toEqual([])
    expect(await replay()).toBe(false)
    expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
    expect(calls.hasStarted).toBe(false)
  })

  check('does not handle an event twice that was delivered anew before it is replayed', async (subject) => {
    const { inbox, calls, expect } = subject
    const key = await keepReadable(subject, 'one')
    await inbox.accept(eventOf('one'))
    const call = await calls.next()
    call.finish()
    await until(() => isIdle(inbox))
    expect(await inbox.deadLetters.replay(key)).toBe(true)
    await until(async () => calls.hasStarted || (await isIdle(inbox)))
    expect([await inbox.deadLetters.list(), calls.hasStarted]).toEqual([[], false])
  })

  check('discards an unreadable delivery, and keeps it again when it arrives again', async (subject) => {
    const { inbox, expect } = subject
    const key = await keepReadable(subject, 'one')
    expect(await inbox.deadLetters.discard(key)).toBe(true)
    expect(await inbox.deadLetters.list()).toEqual([])
    expect(await keepReadable(subject, 'one')).toBe(key)
  })

  check('counts the unreadable deliveries that stay when all dead letters are replayed', async (subject) => {
    const { inbox, calls, expect } = subject
    await keepReadable(subject, 'one')
    await keep(subject)
    expect(await inbox.deadLetters.replayAll?.()).toEqual({ total: 2, replayed: 1, kept: 1 })
    expect((await calls.next()).event.key).toBe('one')
    expect((await inbox.stats()).deadLetters).toBe(1)
  })

  check('expects what follows an unreadable delivery when it is replayed', async (subject) => {
    const { inbox, changes, expect } = subject
    const dueAt = new Date(Date.now() + 60_000)
    const overdue = { ...eventOf('overdue:rule:one', 'media of one'), receivedAt: dueAt }
    const key = await keepReadable(subject, 'one')
    changes.set('one', { at: receivedAt, begins: [{ rule: 'rule', dueAt, overdue }], ends: [] })
    await inbox.deadLetters.replay(key)
    expect((await inbox.expected?.())?.map(({ rule }) => rule)).toEqual(['rule'])
  })
}
