import { describe, expect, test } from 'vitest'
import type {
  AcceptedEvent,
  Attempt,
  AttemptResult,
  ExpectationChanges,
  Inbox,
  InboxDefinition,
} from '../../src/inbox/inbox.ts'
import { memoryInbox } from '../../src/inbox/memory.ts'
import type { DeadLetters, EventRecord, InboxEvents, UnreadableDelivery } from '../../src/inbox/reading.ts'
import { sqliteInbox } from '../../src/inbox/sqlite.ts'
import { temporaryFile } from '../inbox/sqlite/sqlite-tests.ts'
import { eventOf } from '../support/inbox.ts'
import { everyFeature } from './every-feature.ts'
import { failuresOf, type Wrong } from './failures-of.ts'
import { inboxContract } from './suites/inbox.ts'

// A wrong one is found after a wait of 30 s at worst.

const subjectOf = (wrong: Wrong<InboxDefinition>) => () => {
  const right = memoryInbox()
  return { inbox: { ...right, ...wrong(right) } }
}

/** An inbox that opens as it should and then has some wrong methods. */
const withMethods =
  (wrong: Wrong<Inbox>): Wrong<InboxDefinition> =>
  (definition) => ({
    open(host) {
      const right = definition.open(host) as Required<Inbox>
      return {
        accept: (accepted, options) => right.accept(accepted, options),
        handleNow: (accepted) => right.handleNow(accepted),
        stats: () => right.stats(),
        close: (options) => right.close(options),
        deadLetters: right.deadLetters,
        events: right.events,
        history: (mediaId) => right.history(mediaId),
        expected: (limit) => right.expected(limit),
        keepUnreadable: (unreadable) => right.keepUnreadable(unreadable),
        ...wrong(right),
      }
    },
  })

/** An inbox that reports its events wrongly. */
const withEvents = (wrong: (events: InboxEvents) => Partial<InboxEvents>): Wrong<InboxDefinition> =>
  withMethods((inbox) => ({ events: { ...eventsOf(inbox), ...wrong(eventsOf(inbox)) } }))

function eventsOf(inbox: Inbox): InboxEvents {
  const events = inbox.events as InboxEvents
  return {
    states: events.states,
    list: (query) => events.list(query),
    get: (key) => events.get(key),
    outcomes: (keys) => events.outcomes(keys),
    retryNow: (key) => events.retryNow(key),
    stop: (key) => events.stop?.(key) ?? false,
  }
}

/** Lists pages that begin behind the time of the last event of the page before. */
function pagesByTime(list: InboxEvents['list']): InboxEvents['list'] {
  let lastAt: Date | undefined
  return async (query) => {
    const { events, ...page } = await list(query)
    const left = events.filter(({ receivedAt }) => query?.cursor === undefined || +receivedAt !== Number(lastAt))
    lastAt = events.at(-1)?.receivedAt
    return { ...page, events: left }
  }
}

const withLastFailure = (record: EventRecord | undefined) =>
  record && { ...record, failedAttempts: record.failedAttempts.slice(-1) }

/** An inbox that changes the media of every event. */
const withMedia = (mediaOf: (accepted: AcceptedEvent) => string): Wrong<InboxDefinition> =>
  withMethods((inbox) => ({
    accept: (accepted) => inbox.accept({ ...accepted, event: { ...accepted.event, mediaId: mediaOf(accepted) } }),
  }))

/** An inbox that changes attempts or their results. */
const withAttempts =
  (change: {
    attempt?: (attempt: Attempt) => Attempt
    result?: (result: AttemptResult) => AttemptResult
  }): Wrong<InboxDefinition> =>
  (definition) => {
    const { attempt: changed = (attempt) => attempt, result = (result) => result } = change
    return {
      open: ({ handle, ...host }) =>
        definition.open({
          ...host,
          handle: async (accepted, attempt) => result(await handle(accepted, changed(attempt))),
        }),
    }
  }

/** An inbox whose attempts wait wrongly for the limit of a handler. */
const withParking = (wrong: (attempt: Attempt) => Partial<Attempt>): Wrong<InboxDefinition> =>
  withAttempts({
    attempt: (attempt) => ({
      number: attempt.number,
      completed: attempt.completed,
      signal: attempt.signal,
      get aborted() {
        return attempt.aborted
      },
      whileWaiting: (turn) => attempt.whileWaiting?.(turn),
      ...wrong(attempt),
    }),
  })

/** An inbox that changes the effects of events on expectations. */
const withChanges =
  (change: (effects: ExpectationChanges) => Partial<ExpectationChanges>): Wrong<InboxDefinition> =>
  (definition) => ({
    open: (host) =>
      definition.open({
        ...host,
        expectations(accepted) {
          const effects = host.expectations?.(accepted)
          return effects && { ...effects, ...change(effects) }
        },
      }),
  })

/** An inbox that applies the effects of an event once more, as those of a second event, when it should not. */
const applyingAgain =
  (wrong: (inbox: Inbox, again: (accepted: AcceptedEvent) => unknown) => Partial<Inbox>): Wrong<InboxDefinition> =>
  (definition) => {
    const renamed = ({ event, ...rest }: AcceptedEvent, key: string) => ({ ...rest, event: { ...event, key } })
    const wronged = withMethods((inbox) =>
      wrong(inbox, (accepted) => inbox.accept(renamed(accepted, `again ${accepted.event.key}`))),
    )(definition) as InboxDefinition
    return {
      open: ({ expectations, ...host }) =>
        wronged.open({
          ...host,
          expectations: (accepted) => expectations?.(renamed(accepted, accepted.event.key.replace('again ', ''))),
        }),
    }
  }

const agesAgo = new Date(0)
const inAges = new Date(8.64e15)

const wellFormed = (text: string) => new TextDecoder().decode(new TextEncoder().encode(text))

/** An inbox that forgets, once it is closed, that it was opened. */
const reopening: Wrong<InboxDefinition> = () => {
  let definition = memoryInbox()
  const reset = withMethods((inbox) => ({
    close(options) {
      definition = memoryInbox()
      return inbox.close(options)
    },
  }))
  return { open: (host) => (reset(definition) as InboxDefinition).open(host) }
}

const deadLettersOf = ({ deadLetters }: Inbox): Required<DeadLetters> => ({
  list: (options) => deadLetters.list(options),
  get: (key) => deadLetters.get(key),
  replayAll: (options) => (deadLetters as Required<DeadLetters>).replayAll(options),
  replay: (key) => deadLetters.replay(key),
  discard: (key) => deadLetters.discard(key),
})

/** An inbox that tells of no event that it is late. */
const punctual: Wrong<InboxDefinition> = (definition) => ({
  open: ({ handle, ...host }) =>
    definition.open({
      ...host,
      handle: ({ event, ...rest }, attempt) => handle({ ...rest, event: { ...event, late: undefined } }, attempt),
    }),
})

const onlyOnce = 'begins and ends nothing again for a duplicate, and begins nothing again for a replay'

/** An inbox that never hears of a strict order. */
const loose: Wrong<InboxDefinition> = (definition) => ({ open: (host) => definition.open({ ...host, order: 'loose' }) })

/** An inbox that keeps unreadable deliveries with these changes. */
const withUnreadable = (change: Partial<UnreadableDelivery>): Wrong<InboxDefinition> =>
  withMethods((inbox) => ({ keepUnreadable: (unreadable) => inbox.keepUnreadable?.({ ...unreadable, ...change }) }))

/** An inbox with dead letters that do this wrong. */
const withDeadLetters = (wrong: (deadLetters: Required<DeadLetters>) => Partial<DeadLetters>): Wrong<InboxDefinition> =>
  withMethods((inbox) => ({
    deadLetters: { ...deadLettersOf(inbox), ...wrong(deadLettersOf(inbox)) },
  }))

/** An inbox that replays what it still cannot parse as an event of its own. */
const guessing: Wrong<InboxDefinition> = (definition) => ({
  open: ({ parse, ...host }) =>
    definition.open({
      ...host,
      parse: async (given) =>
        Promise.resolve(given)
          .then(parse)
          .catch(() => [eventOf('a guess').event]),
    }),
})

let kept = 0

const unreadable: [string, Wrong<InboxDefinition>, string, string][] = [
  [
    'forgets the headers of an unreadable delivery',
    withUnreadable({ headers: undefined }),
    'keeps an unreadable delivery as it was sent, as a dead letter and not as an event',
    "expected undefined to deeply equal { 'x-id': '1', 'x-type': null }",
  ],
  [
    'keeps an unreadable delivery each time it comes',
    withMethods((inbox) => ({
      keepUnreadable: (given) => inbox.keepUnreadable?.({ ...given, eventId: `${given.eventId} ${kept++}` }),
    })),
    'keeps one unreadable delivery, and another for each id, principal and header',
    'to deeply equal',
  ],
  [
    'takes unreadable deliveries with the same bytes for one',
    withUnreadable({ eventId: undefined, principal: undefined, headers: undefined }),
    'keeps one unreadable delivery, and another for each id, principal and header',
    'expected 1 to be 5',
  ],
  [
    'lists unreadable deliveries behind the dead events',
    withDeadLetters(({ list }) => ({
      list: async (page) =>
        (await list(page)).toSorted((a, b) => Number(b.event !== undefined) - Number(a.event !== undefined)),
    })),
    'lists unreadable deliveries among the dead events, newest first, page by page',
    'to deeply equal',
  ],
  [
    'makes an event of what it cannot parse',
    guessing,
    'leaves an unreadable delivery as it is when it still cannot be parsed',
    "expected undefined to be 'malformed'",
  ],
  [
    'lets everybody replay an unreadable delivery',
    withDeadLetters(({ replay }) => ({ replay: async (key) => (await replay(key)) || key.startsWith('unreadable:') })),
    'handles an unreadable delivery once when it can be parsed, however many replay it',
    'expected [ true, true ] to deeply equal [ false, true ]',
  ],
  [
    'forgets the principal of an unreadable delivery',
    withUnreadable({ principal: undefined }),
    'handles an unreadable delivery once when it can be parsed, however many replay it',
    "to deeply equal [ 'one', 'zoo'",
  ],
  [
    'forgets the key of an unreadable delivery',
    withUnreadable({ eventId: 'another' }),
    'does not handle an event twice that was delivered anew before it is replayed',
    'to deeply equal [ [], false ]',
  ],
  [
    'never keeps again what was discarded',
    withMethods((inbox) => {
      let isDiscarded = false
      return {
        keepUnreadable: (given) => (isDiscarded ? undefined : inbox.keepUnreadable?.(given)),
        deadLetters: {
          ...deadLettersOf(inbox),
          discard(key) {
            isDiscarded = true
            return inbox.deadLetters.discard(key)
          },
        },
      }
    }),
    'discards an unreadable delivery, and keeps it again when it arrives again',
    "expected 'no dead letter' to be 'unreadable:",
  ],
  [
    'counts what it cannot replay as replayed',
    withDeadLetters(({ replayAll }) => ({
      replayAll: async (options) => {
        const { total } = await replayAll(options)
        return { total, replayed: total, kept: 0 }
      },
    })),
    'counts the unreadable deliveries that stay when all dead letters are replayed',
    'to deeply equal { total: 2, replayed: 1, kept: 1 }',
  ],
  [
    'expects nothing after a replay',
    withChanges(() => ({ begins: [] })),
    'expects what follows an unreadable delivery when it is replayed',
    "expected [] to deeply equal [ 'rule' ]",
  ],
]

/** The fault, the inbox that has it, the check that catches it, and the message of that check. */
const wrongInboxes: [string, Wrong<InboxDefinition>, string, string][] = [
  [
    'serves any number of receivers',
    () => ({ open: (host) => memoryInbox().open(host) }),
    'cannot be opened by a second receiver',
    "expected undefined to be 'invalid_option'",
  ],
  [
    'can be opened again after it was closed',
    reopening,
    'cannot be opened again once it is closed',
    "expected undefined to be 'invalid_option'",
  ],
  [
    'does not have the handleNow that it promises',
    withMethods(() => ({ handleNow: undefined }) as Partial<Inbox>),
    "has handleNow with ack: 'handled'",
    'expected false to be true',
  ],
  [
    'hides that it has handleNow',
    () => ({ handlesNow: false }),
    'has handleNow only if its definition says so',
    "give the suite `{ handlesNow: true }` for an inbox that can be used with ack: 'handled'",
  ],
  [
    'calls an event handled whose handler failed',
    withMethods((inbox) => ({
      handleNow: async (accepted) => ((await inbox.handleNow?.(accepted)) ? 'handled' : 'failed'),
    })),
    'answers what its handlers made of an event, and then calls it a duplicate',
    "expected 'handled' to be 'failed'",
  ],
  [
    'accepts everything',
    withMethods((inbox) => ({
      accept: (accepted) => (inbox.accept(accepted) === 'overloaded' ? 'overloaded' : 'accepted'),
    })),
    'accepts one of 20 concurrent deliveries of one event',
    'expected 20 to be 1',
  ],
  [
    'accepts a list from its end',
    withMethods((inbox) => ({
      acceptAll: async (list) =>
        [...list]
          .reverse()
          .map((accepted) => inbox.accept(accepted) as 'accepted' | 'duplicate')
          .reverse(),
    })),
    'accepts a list of events in its order, or one after the other',
    "to deeply equal [ 'known', 'first', 'second' ]",
  ],
  [
    'accepts nothing',
    withMethods(() => ({ accept: () => 'duplicate' })),
    'accepts an event and hands it over as it was given',
    "expected 'duplicate' to be 'accepted'",
  ],
  [
    'takes lone surrogates in keys for one another',
    withMethods((inbox) => ({
      accept: ({ event, ...rest }) => inbox.accept({ ...rest, event: { ...event, key: wellFormed(event.key) } }),
    })),
    'keeps events apart, whatever the texts of their keys are',
    "expected 'duplicate' to be 'accepted'",
  ],
  [
    'forgets the order',
    withMedia(({ event }) => event.key),
    'hands over the events of one media item one after another, in order',
    "expected '2' to be 'witness of 1'",
  ],
  [
    'handles all media as one',
    withMedia(() => 'media'),
    'handles different media items at the same time',
    'no attempt started within 30000 ms',
  ],
  [
    'forgets which handlers have completed',
    withAttempts({ attempt: ({ number, signal }) => ({ number, signal, aborted: false, completed: [] }) }),
    'hands an event over again after the delay, with the handlers that have completed',
    "expected [] to deeply equal [ 'a' ]",
  ],
  [
    'forgets which handlers do not run again',
    withAttempts({
      attempt: ({ number, completed, signal }) => ({ number, completed, signal, aborted: false }),
    }),
    'hands an event over again with the failures of its last attempt that failed, until it is replayed',
    "expected undefined to deeply equal [ { handler: 'a', …(1) }, …(1) ]",
  ],
  [
    'does not count attempts',
    withAttempts({ attempt: ({ completed, signal }) => ({ number: 1, signal, aborted: false, completed }) }),
    'hands an event over again after the delay, with the handlers that have completed',
    'expected 1 to be 2',
  ],
  [
    'retries immediately',
    withAttempts({ result: (result) => (result.status === 'retry' ? { ...result, delayMs: 0 } : result) }),
    'does not hand an event over again before the delay is over',
    'expected false to be true',
  ],
  [
    'drops events that cannot be handled',
    withAttempts({ result: (result) => (result.status === 'dead' ? { status: 'done' } : result) }),
    'counts its events',
    'expected { waiting: 1, running: 1, …(2) } to deeply equal { waiting: 1, running: 1, …(2) }',
  ],
  [
    'replays dead letters that it does not have',
    withMethods((inbox) => ({ deadLetters: { ...deadLettersOf(inbox), replay: () => true } })),
    'has no dead letter for a key that it has not seen',
    'expected true to be false',
  ],
  [
    'lists the oldest dead letters first',
    withMethods((inbox) => ({
      deadLetters: { ...deadLettersOf(inbox), list: async () => (await inbox.deadLetters.list()).toReversed() },
    })),
    'lists the newest dead letters first, page by page',
    "to deeply equal [ '12', '11', '10',",
  ],
  [
    'does not wait when it closes',
    withMethods((inbox) => ({ close: () => inbox.close({ timeoutMs: 0 }) })),
    'finishes running events before it is closed',
    'expected false to be true',
  ],
  [
    'does not report the events that it could not finish',
    withMethods((inbox) => ({ close: (options) => inbox.close(options).then(() => ({ unfinished: [] })) })),
    'gives up on an event that runs too long, aborts it and reports it',
    'expected [] to deeply equal [ { event: { …(15) }, …(2) } ]',
  ],
  [
    'does not abort the events that it gives up on',
    withAttempts({
      attempt: ({ number, completed }) => ({ number, completed, aborted: false, signal: new AbortController().signal }),
    }),
    'gives up on an event that runs too long, aborts it and reports it',
    'the condition did not hold within 30000 ms',
  ],
  [
    'says that it has no events',
    withMethods(() => ({ events: undefined })),
    'shows an event with its attempts, failures and times',
    'give the suite `{ reads: true }` for an inbox with events',
  ],
  [
    'also lists events of other types',
    withEvents(({ list }) => ({ list: ({ type: _, ...query } = {}) => list(query) })),
    'lists events by state, type and media item',
    "to deeply equal [ 'retrying' ]",
  ],
  [
    'lists the first page again and again',
    withEvents(({ list }) => ({ list: ({ cursor: _, ...query } = {}) => list(query) })),
    'lists every event once, page by page, in both orders',
    "to deeply equal [ '1', '2', '3', '4', '5' ]",
  ],
  [
    'lists the oldest events first',
    withEvents(({ list }) => ({ list: (query) => list({ ...query, order: 'oldest' }) })),
    'lists every event once, page by page, in both orders',
    'expected [ +0, +0, 1, 1, 2 ] to deeply equal [ 2, 1, 1, +0, +0 ]',
  ],
  [
    'skips an event that was received in the same millisecond as the last one of a page',
    withEvents(({ list }) => ({ list: pagesByTime(list) })),
    'lists every event once, page by page, in both orders',
    "expected [ '2', '4', '5' ] to deeply equal [ '1', '2', '3', '4', '5' ]",
  ],
  [
    'tells the outcomes in another order than it was asked for',
    withEvents(({ outcomes }) => ({ outcomes: async (keys) => (await outcomes(keys)).toReversed() })),
    'tells what became of many events at once',
    "to deeply equal [ 'open', undefined",
  ],
  [
    'retries nothing on request',
    withEvents(() => ({ retryNow: () => false })),
    'starts the next attempt now, on request',
    'expected false to be true',
  ],
  [
    'retries what it does not have',
    withEvents(({ retryNow }) => ({ retryNow: async (key) => (await retryNow(key)) || key === 'unknown' })),
    'starts the next attempt now, on request',
    'expected true to be false',
  ],
  [
    'stops nothing on request',
    withEvents(() => ({ stop: () => false })),
    'stops a handler that runs, on request, if it can',
    'expected false to be true',
  ],
  [
    'says that it stopped what it did not',
    withEvents(({ stop }) => ({ stop: async (key) => (await stop?.(key)) || key === 'unknown' })),
    'stops a handler that runs, on request, if it can',
    'expected true to be false',
  ],
  [
    'shows when a retried event started',
    withEvents(({ get }) => ({
      get: async (key) => {
        const record = await get(key)
        return record && { ...record, startedAt: new Date() }
      },
    })),
    'shows an event with its attempts, failures and times',
    'to deeply equal [ undefined, undefined ]',
  ],
  [
    'shows the history of all media items together',
    withMethods((inbox) => ({ history: async () => (await eventsOf(inbox).list({ order: 'oldest' })).events })),
    'shows the history of a media item in order of acceptance',
    "expected [ '2', '3', 'other' ] to deeply equal [ '2', '3' ]",
  ],
  [
    'forgets the failures of an event that is replayed',
    withEvents(({ get }) => ({ get: async (key) => withLastFailure(await get(key)) })),
    'keeps every failed attempt of an event that becomes a dead letter, and of its replay',
    'expected [ 2 ] to deeply equal [ 1, 2 ]',
  ],
  [
    'stores what UTF-8 can write',
    withMethods((inbox) => ({
      accept: ({ event, ...rest }) =>
        inbox.accept({ ...rest, event: { ...event, title: Buffer.from(`${event.title}`).toString() } }),
    })),
    'keeps any text, also one that is no Unicode or means something in SQL',
    'to deeply equal',
  ],
  [
    'finds a type in what the sender wrote',
    withEvents(({ list }) => ({
      list: async ({ type, ...query } = {}) => {
        const { events } = await list(query)
        return { events: events.filter((each) => JSON.stringify(each.event).includes(type ?? '')) }
      },
    })),
    'lists events by state, type and media item',
    "to deeply equal [ 'retrying' ]",
  ],
  [
    'loses the trace of a delivery',
    withMethods((inbox) => ({ accept: ({ trace: _, ...accepted }) => inbox.accept(accepted) })),
    'keeps the trace of a delivery, also for a retry and for a replay',
    'expected undefined to deeply equal',
  ],
  [
    'replays dead letters of every type',
    withMethods((inbox) => ({
      deadLetters: {
        ...deadLettersOf(inbox),
        replayAll: ({ type: _, ...options } = {}) => (inbox.deadLetters as Required<DeadLetters>).replayAll(options),
      },
    })),
    'replays all dead letters of a type or a time, oldest first, and reports its progress',
    'to deeply equal { total: 2, replayed: 2, kept: +0 }',
  ],
  [
    'does not know since when events wait',
    withMethods((inbox) => ({ stats: async () => ({ ...(await inbox.stats()), oldestWaitingAt: undefined }) })),
    'says since when the oldest event waits',
    'expected undefined to deeply equal 2026-03-01T12:00:09.000Z',
  ],
  [
    'lets an event wait since its receipt when it is replayed',
    withMethods((inbox) => ({
      stats: async () => ({ ...(await inbox.stats()), oldestWaitingAt: new Date('2026-03-01T12:00:01.500Z') }),
    })),
    'says that an event waits since its replay, or since its retry was asked for',
    'expected false to be true',
  ],
  ...unreadable,
  [
    'hands over what is overdue too early',
    withChanges(({ begins }) => ({ begins: begins.map((each) => ({ ...each, dueAt: new Date() })) })),
    'hands over what is overdue, once, and not before its deadline',
    'expected false to be true',
  ],
  [
    'forgets when what is overdue was due',
    withChanges(({ begins }) => ({
      begins: begins.map((each) => ({ ...each, overdue: { ...each.overdue, receivedAt: new Date(0) } })),
    })),
    'hands over what is overdue, once, and not before its deadline',
    'to deeply equal',
  ],
  [
    'ends no expectation',
    withChanges(() => ({ ends: [] })),
    'hands over nothing when an end was accepted in time',
    "to be 'overdue:rule:witness'",
  ],
  [
    'does not remember an end',
    withChanges(({ at, ends }) => ({ at: ends.length > 0 ? agesAgo : at })),
    'begins nothing when the end was accepted before the event that it ends',
    'to deeply equal []',
  ],
  [
    'remembers the end that came last instead of the latest one',
    (definition) => {
      let endedAt = 0
      return withChanges(({ at, ends }) => {
        if (ends.length > 0) endedAt = at.getTime()
        return { at: ends.length > 0 || at.getTime() <= endedAt ? at : inAges }
      })(definition)
    },
    'begins nothing before the latest end, in whatever order the ends came',
    'to deeply equal []',
  ],
  [
    'lets an old end count for what began later',
    withChanges(({ at, ends }) => ({ at: ends.length > 0 ? inAges : at })),
    'keeps what began after the end, in either order',
    "to deeply equal [ 'rule of media' ]",
  ],
  [
    'ends the expectations of every rule',
    withChanges(({ ends }) => ({ ends: ends.length > 0 ? ['rule', 'other'] : ends })),
    'ends all expectations of a rule and a media item, and no others',
    "to deeply equal [ 'other of media', 'rule of other' ]",
  ],
  ...(
    [
      ['begins', 'one', "expected [ 'rule of media' ] to deeply equal []"],
      ['ends', 'end', "expected [] to deeply equal [ 'rule of media' ]"],
    ] as const
  ).map(([does, key, message]): [string, Wrong<InboxDefinition>, string, string] => [
    `${does} an expectation again for a duplicate`,
    applyingAgain((inbox, again) => ({
      async accept(accepted) {
        const acceptance = await inbox.accept(accepted)
        if (acceptance === 'duplicate' && accepted.event.key === key) await again(accepted)
        return acceptance
      },
    })),
    onlyOnce,
    message,
  ]),
  [
    'begins an expectation again for a replay',
    applyingAgain((inbox, again) => ({
      deadLetters: {
        ...deadLettersOf(inbox),
        async replay(key) {
          const { event, receivedAt } = (await inbox.deadLetters.get(key)) as AcceptedEvent
          await again({ event, receivedAt })
          return true
        },
      },
    })),
    onlyOnce,
    "expected [ 'rule of media' ] to deeply equal []",
  ],
  [
    'takes lone surrogates for one another',
    withChanges(({ begins, ends }) => ({
      begins: begins.map((each) => ({ ...each, rule: wellFormed(each.rule) })),
      ends: ends.map(wellFormed),
    })),
    'keeps rules and media items apart, whatever their texts are',
    'to deeply equal',
  ],
  [
    'lists open expectations in any order',
    withMethods((inbox) => ({ expected: async (limit) => [...((await inbox.expected?.(limit)) ?? [])].reverse() })),
    'lists and counts the open expectations, the first deadline first',
    'to deeply equal',
  ],
  ...(
    [
      ['lets a retry be overtaken', 'holds the events of a media item back while an earlier one waits for its retry'],
      ['starts what comes while a retry waits', 'holds what is accepted during the wait back, and no other media item'],
      ['forgets the order after a retry', 'holds them back through every retry, and until its handlers could run'],
      ['overtakes dead letters to be', 'lets them go on once it is a dead letter'],
      ['mixes the events of a media item', 'keeps the order of many media items whose events fail'],
    ] as const
  ).map(([fault, caughtBy]): [string, Wrong<InboxDefinition>, string, string] => [fault, loose, caughtBy, 'expected']),
  [
    'leaves their slots to attempts that wait for a limit',
    withParking(() => ({ whileWaiting: (turn) => turn })),
    'makes attempts while any number of others wait for the limit of a handler',
    'no attempt started within 30000 ms',
  ],
  [
    'forgets attempts that wait for a limit',
    withParking((attempt) => ({ whileWaiting: () => attempt.whileWaiting?.(new Promise(() => {})) })),
    'resumes an attempt in its turn, which goes on where it was',
    'the condition did not hold within 30000 ms',
  ],
  [
    'lets later events overtake one that waits for a limit',
    withMedia(({ event }) => event.key),
    'keeps later events of the media item waiting behind an attempt that waits',
    'expected true to be false',
  ],
  [
    'lets later events overtake one that goes back because of a limit',
    withParking(() => ({ whileWaiting: () => undefined })),
    'lets no later event of its media item pass one that goes back until its turn',
    'expected true to be false',
  ],
  [
    'closes without a word to an attempt that waits for a limit',
    withParking(() => ({ signal: new AbortController().signal })),
    'ends the wait when it closes, and reports no running event',
    'expected false to be true',
  ],
  [
    'makes an attempt again before its turn',
    withAttempts({ result: (result) => (result.status === 'retry' ? { ...result, delayMs: 0 } : result) }),
    'makes the attempt again when it is given back until its turn, and counts none',
    'expected [ false, true ] to deeply equal [ true, true ]',
  ],
]

const features = {
  reads: true,
  keepsUnreadable: true,
  expects: true,
  strict: true,
  limits: true,
  handlesNow: true,
}

describe('the contract suite of inboxes', () => {
  test('passes a correct inbox', async () => {
    const right = subjectOf(() => ({}))
    expect(await failuresOf((runner) => inboxContract(right, runner, features))).toEqual({})
  })

  test.concurrent.each(wrongInboxes)('catches an inbox that %s', async (_, wrong, caughtBy, message) => {
    expect(await failuresOf((runner) => inboxContract(subjectOf(wrong), runner, features), caughtBy)).toEqual({
      [caughtBy]: expect.stringContaining(message),
    })
  })

  test('catches an inbox that tells of no event that it is late', async () => {
    const caughtBy = 'tells that an event is late, in every attempt, if one of a later time was tried before it'
    const subject = async () => {
      const { path, remove } = await temporaryFile()
      const right = sqliteInbox({ path })
      return { inbox: { ...right, ...punctual(right) }, close: remove }
    }
    expect(
      await failuresOf((runner) => inboxContract(subject, runner, { ...everyFeature, transactions: false }), caughtBy),
    ).toEqual({ [caughtBy]: expect.stringContaining('expected') })
  })
})
