import { WebhookError } from '../../../src/errors.ts'
import type { AcceptedEvent } from '../../../src/inbox/inbox.ts'
import type { EventRecord, InboxEvents, ReplayReport } from '../../../src/inbox/reading.ts'
import { eventOf, until } from '../../support/inbox.ts'
import { type Check, codeOf, type InboxCheck } from './inbox-check.ts'

const failures = [{ handler: 'b', message: 'Error: no' }]
const later = { status: 'retry', delayMs: 60_000, completed: ['a'], failures } as const
const trace = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }

type Readable = InboxCheck & { readonly events: InboxEvents }

/** Accepts an event, received `second` seconds after the others, and waits until it runs. */
async function start(
  { inbox, calls }: Readable,
  key: string,
  second = 0,
  change: Partial<AcceptedEvent['event']> = {},
) {
  const { event, receivedAt } = eventOf(key)
  const accepted = {
    event: { ...event, ...change } as typeof event,
    receivedAt: new Date(+receivedAt + second * 1_000),
  }
  await inbox.accept(accepted)
  return calls.next()
}

async function inState({ events }: Readable, key: string, state: EventRecord['state']): Promise<EventRecord> {
  await until(async () => (await events.get(key))?.state === state)
  return (await events.get(key)) as EventRecord
}

async function makeDeadLetter(subject: Readable, key: string, change?: Partial<AcceptedEvent['event']>): Promise<void> {
  const call = await start(subject, key, 0, change)
  call.finish({ status: 'dead', completed: ['a'], failures })
  await inState(subject, key, 'dead')
}

const keysOf = (records: readonly EventRecord[]): string[] => records.map(({ key }) => key)

export function checkReading(checkInbox: Check): void {
  const check = (name: string, run: (subject: Readable) => Promise<void>) =>
    checkInbox(
      name,
      async (subject) => {
        const { events } = subject.inbox
        if (events === undefined) throw new Error('an inbox with the feature `reads` has `events`')
        await run({ ...subject, events })
      },
      'reads',
    )

  check('lists events by state, type and media item', async (subject) => {
    const { events, expect } = subject
    // A payload is the sender's: what it says of a type and a media item is none of the event's.
    await start(subject, 'running', 1, {
      payload: { type: 'encoding.failed', mediaId: 'm', nested: { media_id: 'm' } },
    })
    const retrying = await start(subject, 'retrying', 2, { type: 'encoding.failed', mediaId: 'm' })
    retrying.finish(later)
    await inState(subject, 'retrying', 'retrying')
    await makeDeadLetter(subject, 'dead', { mediaId: 'm' })
    const keys = async (query: Parameters<InboxEvents['list']>[0]) => keysOf((await events.list(query)).events)
    expect(await keys({ state: 'running' })).toEqual(['running'])
    expect(await keys({ state: 'retrying' })).toEqual(['retrying'])
    expect(await keys({ state: 'dead' })).toEqual(['dead'])
    expect(await keys({ state: 'waiting' })).toEqual([])
    expect(await keys({ type: 'encoding.failed' })).toEqual(['retrying'])
    expect((await keys({ mediaId: 'm' })).toSorted()).toEqual(['dead', 'retrying'])
    expect(await keys({ mediaId: 'm', state: 'dead' })).toEqual(['dead'])
    expect((await keys({})).toSorted()).toEqual(['dead', 'retrying', 'running'])
  })

  check('rejects a page, a limit or a time that is none', async ({ inbox, events, expect }) => {
    for (const wrong of ['text', Number.NaN, -1, null] as never[]) {
      expect(await codeOf(() => inbox.deadLetters.list({ limit: wrong }))).toBe('invalid_option')
      expect(await codeOf(() => inbox.deadLetters.list({ offset: wrong }))).toBe('invalid_option')
      expect(await codeOf(() => inbox.deadLetters.list(wrong))).toBe('invalid_option')
      expect(await codeOf(() => events.list({ limit: wrong }))).toBe('invalid_option')
      expect(await codeOf(() => inbox.deadLetters.replayAll?.({ perSecond: wrong }))).toBe('invalid_option')
      if (inbox.expected) expect(await codeOf(() => inbox.expected?.(wrong))).toBe('invalid_option')
      if (inbox.activity) expect(await codeOf(() => inbox.activity?.(wrong))).toBe('invalid_option')
    }
  })

  check('lists every event once, page by page, in both orders', async (subject) => {
    const { events, expect } = subject
    const keys = ['1', '2', '3', '4', '5']
    // Events received in the same millisecond are unordered, and a page may end between them.
    const seconds = [0, 0, 1, 1, 2]
    for (const [index, key] of keys.entries()) {
      const call = await start(subject, key, seconds[index])
      call.finish(later)
      await inState(subject, key, 'retrying')
    }
    for (const order of ['oldest', 'newest'] as const) {
      const found: EventRecord[] = []
      let cursor: string | undefined
      do {
        const page = await events.list({ order, limit: 2, ...(cursor !== undefined && { cursor }) })
        expect(page.events.length <= 2).toBe(true)
        found.push(...page.events)
        cursor = page.cursor
      } while (cursor !== undefined && found.length < 10)
      expect(keysOf(found).toSorted()).toEqual(keys)
      const after = found.map(({ receivedAt }) => (+receivedAt - +eventOf('1').receivedAt) / 1_000)
      expect(after).toEqual(order === 'oldest' ? seconds : seconds.toReversed())
    }
  })

  check('rejects a query that makes no sense', async ({ events, expect }) => {
    const wrong = [
      { state: 'gone' },
      { order: 'random' },
      { limit: 0 },
      { limit: 1.5 },
      { cursor: 'x' },
      { media: 'm' },
    ]
    for (const query of wrong) expect(await codeOf(() => events.list(query as never))).toBe('invalid_option')
  })

  check('shows an event with its attempts, failures and times', async (subject) => {
    const { events, expect } = subject
    const before = Date.now()
    const first = await start(subject, 'one')
    const running = await inState(subject, 'one', 'running')
    expect(running.attempts).toBe(1)
    // Not every inbox knows it.
    if (running.startedAt !== undefined) expect(Math.abs(Number(running.startedAt) - before) < 10_000).toBe(true)
    first.finish(later)
    const { event, ...record } = await inState(subject, 'one', 'retrying')
    expect(event).toEqual(eventOf('one').event)
    expect(record.type).toBe('encoding.finished')
    expect(record.mediaId).toBe('media of one')
    expect(record.receivedAt).toEqual(eventOf('one').receivedAt)
    expect(record.attempts).toBe(1)
    expect(record.completed).toEqual(['a'])
    expect(record.failedAttempts.map(({ number, failures: each }) => [number, each])).toEqual([[1, failures]])
    const [failed] = record.failedAttempts
    // The database's clock may differ from ours.
    expect(Math.abs(Number(failed?.failedAt) - before) < 10_000).toBe(true)
    expect(Math.abs(Number(record.dueAt) - before - 60_000) < 10_000).toBe(true)
    expect(record.endedAt).toBe(undefined)
    expect([record.startedAt, record.process]).toEqual([undefined, undefined])
    expect(await events.get('unknown')).toBe(undefined)
  })

  check('keeps every failed attempt of an event that becomes a dead letter, and of its replay', async (subject) => {
    const { inbox, calls, expect } = subject
    const first = await start(subject, 'one')
    first.finish({ ...later, delayMs: 5 })
    const second = await calls.next()
    second.finish({ status: 'dead', completed: ['a'], failures })
    const record = await inState(subject, 'one', 'dead')
    expect(record.failedAttempts.map(({ number }) => number)).toEqual([1, 2])
    expect(record.attempts).toBe(2)
    expect(record.endedAt instanceof Date).toBe(true)
    expect((await inbox.deadLetters.get('one'))?.failedAttempts?.map(({ number }) => number)).toEqual([1, 2])
    await inbox.deadLetters.replay('one')
    const third = await calls.next()
    third.finish(later)
    const { failedAttempts } = await inState(subject, 'one', 'retrying')
    expect(failedAttempts.map(({ number }) => number)).toEqual([1, 2, 1])
  })

  check('remembers the outcome of a handled event, if it says so', async (subject) => {
    const { inbox, events, calls, expect } = subject
    const first = await start(subject, 'one')
    first.finish({ ...later, delayMs: 5 })
    const second = await calls.next()
    second.finish()
    if (!events.states.includes('handled')) {
      await until(async () => (await events.get('one')) === undefined)
      return
    }
    const record = await inState(subject, 'one', 'handled')
    expect(record.event).toBe(undefined)
    expect(record.completed).toEqual(['a', 'b'])
    expect(record.type).toBe('encoding.finished')
    expect(record.receivedAt).toEqual(eventOf('one').receivedAt)
    expect(record.attempts).toBe(2)
    expect(record.failedAttempts.map(({ number }) => number)).toEqual([1])
    expect(record.endedAt instanceof Date).toBe(true)
    expect(keysOf((await events.list({ state: 'handled' })).events)).toEqual(['one'])
    expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
  })

  check('keeps any text, also one that is no Unicode or means something in SQL', async (subject) => {
    const { inbox, events, calls, expect } = subject
    for (const text of ['a\0b', '\ud800', '\udc00\ud800', '"\\u0000', `'; DROP TABLE x; --`, '\u2028😀:*?']) {
      // Redis compares types and media ids as UTF-8, which has no lone surrogates.
      const name = text.replaceAll(/\p{Surrogate}/gu, 'surrogate')
      const { event, receivedAt } = eventOf(text, name)
      const odd = { ...event, type: name, title: text } as typeof event
      await inbox.accept({ event: odd, receivedAt, trace: { traceparent: text } })
      const call = await calls.next()
      call.finish({ status: 'dead', completed: [text], failures: [{ handler: text, message: text }] })
      const record = await inState(subject, text, 'dead')
      expect([record.key, record.event, record.completed]).toEqual([text, odd, [text]])
      expect([record.trace, record.failedAttempts[0]?.failures]).toEqual([
        { traceparent: text },
        [{ handler: text, message: text }],
      ])
      expect(keysOf((await inbox.history?.(name)) ?? [])).toEqual([text])
      expect(keysOf((await events.list({ type: name, mediaId: name })).events)).toEqual([text])
      expect(await inbox.deadLetters.replay(text)).toBe(true)
      const replayed = await calls.next()
      expect(replayed.event).toEqual(odd)
      replayed.finish()
    }
  })

  check('tells what became of many events at once', async (subject) => {
    const { inbox, events, expect } = subject
    const handled = await start(subject, '1 "1"')
    handled.finish()
    await until(async () => (await inbox.stats()).running === 0)
    const retrying = await start(subject, '2-2')
    retrying.finish(later)
    await inState(subject, '2-2', 'retrying')
    await makeDeadLetter(subject, '3')
    await makeDeadLetter(subject, 'discarded')
    await inbox.deadLetters.discard('discarded')
    await start(subject, '4')
    const keys = ['4', 'unknown', '3', 'discarded', '2-2', '1 "1"']
    const ofHandled = events.states.includes('handled') ? 'handled' : undefined
    expect(await events.outcomes(keys)).toEqual(['open', undefined, 'dead', undefined, 'open', ofHandled])
    expect(await events.outcomes([])).toEqual([])
  })

  check('shows the history of a media item in order of acceptance', async (subject) => {
    const { inbox, events, expect } = subject
    const handled = await start(subject, '1', 0, { mediaId: 'm' })
    handled.finish()
    await until(async () => (await inbox.stats()).running === 0)
    const retrying = await start(subject, '2', 1, { mediaId: 'm' })
    retrying.finish(later)
    await inState(subject, '2', 'retrying')
    await start(subject, '3', 2, { mediaId: 'm' })
    await start(subject, 'other', 3)
    const known = events.states.includes('handled') ? ['1', '2', '3'] : ['2', '3']
    expect(keysOf((await inbox.history?.('m')) ?? [])).toEqual(known)
    expect(await inbox.history?.('unknown')).toEqual([])
  })

  check('starts the next attempt now, on request', async (subject) => {
    const { events, calls, expect } = subject
    const first = await start(subject, 'one')
    expect(await events.retryNow('one')).toBe(false)
    first.finish(later)
    await inState(subject, 'one', 'retrying')
    expect(await events.retryNow('one')).toBe(true)
    const second = await calls.next()
    expect(second.event.key).toBe('one')
    expect(second.attempt.number).toBe(2)
    expect(second.attempt.completed).toEqual(['a'])
    expect(await events.retryNow('one')).toBe(false)
    second.finish()
    expect(await events.retryNow('unknown')).toBe(false)
  })

  check('stops a handler that runs, on request, if it can', async (subject) => {
    const { events, expect } = subject
    if (events.stop === undefined) return
    const call = await start(subject, 'one')
    const errors: unknown[] = []
    call.attempt.run = {
      expire(error) {
        errors.push(error)
        call.attempt.run = undefined
        call.finish(later)
      },
    }
    await inState(subject, 'one', 'running')
    expect(await events.stop('one')).toBe(true)
    expect((await inState(subject, 'one', 'retrying')).failedAttempts.length).toBe(1)
    expect(errors.map((error) => error instanceof WebhookError && error.code)).toEqual(['stopped'])
    expect(await events.stop('one')).toBe(false)
    expect(await events.stop('unknown')).toBe(false)
  })

  check('says since when the oldest event waits', async ({ inbox, calls, ordered, expect }) => {
    // Without an order, nothing waits among so few events.
    if (!ordered) return
    const [first, second] = [eventOf('1', 'm'), { ...eventOf('2', 'm'), receivedAt: new Date('2026-03-01T12:00:09Z') }]
    await inbox.accept(first)
    await calls.next()
    expect((await inbox.stats()).oldestWaitingAt).toBe(undefined)
    await inbox.accept(second)
    let stats = await inbox.stats()
    await until(async () => {
      stats = await inbox.stats()
      return stats.waiting === 1
    })
    expect(stats.oldestWaitingAt).toEqual(second.receivedAt)
  })

  check('says that an event waits since its replay, or since its retry was asked for', async (subject) => {
    const { inbox, events, ordered, expect } = subject
    if (!ordered) return
    await makeDeadLetter(subject, 'dead', { mediaId: 'm' })
    const failed = await start(subject, 'failed', 0, { mediaId: 'm' })
    failed.finish(later)
    await inState(subject, 'failed', 'retrying')
    await start(subject, 'running', 0, { mediaId: 'm' })
    expect(await events.retryNow('failed')).toBe(true)
    expect(await inbox.deadLetters.replay('dead')).toBe(true)
    await until(async () => (await inbox.stats()).waiting === 2)
    const { oldestWaitingAt } = await inbox.stats()
    // The database's clock may differ from ours.
    expect(Math.abs(Number(oldestWaitingAt) - Date.now()) < 10_000).toBe(true)
    expect((await events.get('dead'))?.receivedAt).toEqual(eventOf('dead').receivedAt)
  })

  check('keeps the trace of a delivery, also for a retry and for a replay', async (subject) => {
    const { inbox, calls, expect } = subject
    await inbox.accept({ ...eventOf('one'), trace })
    const first = await calls.next()
    expect(first.trace).toEqual(trace)
    first.finish({ ...later, delayMs: 5 })
    const second = await calls.next()
    expect(second.trace).toEqual(trace)
    second.finish({ status: 'dead', completed: ['a'], failures })
    expect((await inState(subject, 'one', 'dead')).trace).toEqual(trace)
    await inbox.deadLetters.replay('one')
    expect((await calls.next()).trace).toEqual(trace)
  })

  check('replays all dead letters of a type or a time, oldest first, and reports its progress', async (subject) => {
    const { inbox, calls, expect } = subject
    const { deadLetters } = inbox
    await makeDeadLetter(subject, '1')
    await makeDeadLetter(subject, '2', { type: 'encoding.failed' })
    await makeDeadLetter(subject, '3')
    expect(await deadLetters.replayAll?.({ since: new Date(Date.now() + 60_000) })).toEqual(reportOf(0, 0))
    const reports: ReplayReport[] = []
    const options = { type: 'encoding.finished', onProgress: (each: ReplayReport) => void reports.push(each) }
    expect(await deadLetters.replayAll?.({ ...options, since: new Date(Date.now() - 60_000) })).toEqual(reportOf(2, 2))
    expect(reports).toEqual([reportOf(2, 1), reportOf(2, 2)])
    expect([(await calls.next()).event.key, (await calls.next()).event.key].toSorted()).toEqual(['1', '3'])
    expect((await inbox.stats()).deadLetters).toBe(1)
    expect(await deadLetters.replayAll?.({ signal: AbortSignal.abort() })).toEqual(reportOf(1, 0))
    expect(await codeOf(() => deadLetters.replayAll?.({ perSecond: 0 }))).toBe('invalid_option')
    expect((await inbox.stats()).deadLetters).toBe(1)
  })

  check('records what its receiver does, if it has activity', async ({ inbox, observers, expect }) => {
    if (inbox.activity === undefined) return
    const [observer] = observers
    observer?.delivery({ outcome: 'accepted', status: 200, durationMs: 3 })
    observer?.delivery({ outcome: 'duplicate', status: 200, durationMs: 1 })
    observer?.delivery({ outcome: 'ignored', status: 200, durationMs: 1 })
    observer?.delivery({ outcome: 'malformed', status: 400, durationMs: 1 })
    observer?.attempt({ outcome: 'retried', sinceReceivedMs: 4 })
    observer?.attempt({ outcome: 'handled', sinceReceivedMs: 40 })
    const minutes = await inbox.activity(new Date(Date.now() - 120_000))
    const counts = ['accepted', 'duplicates', 'ignored', 'rejected', 'handled', 'failed'] as const
    const sums = counts.map((count) => minutes.reduce((total, minute) => total + minute[count], 0))
    expect(sums).toEqual([1, 1, 1, 1, 1, 1])
    const counted = minutes.flatMap(({ acknowledgement, handling }) => [...acknowledgement, ...handling])
    expect(counted.reduce((total, count) => total + count, 0)).toBe(3)
    expect(await inbox.activity(new Date(Date.now() + 120_000))).toEqual([])
  })
}

const reportOf = (total: number, replayed: number): ReplayReport => ({ total, replayed, kept: 0 })
