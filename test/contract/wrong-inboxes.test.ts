import { describe, expect, test } from 'vitest'
import type { AcceptedEvent, Attempt, HandlingResult, Inbox } from '../../src/inbox/inbox.ts'
import { memoryInbox } from '../../src/inbox/memory.ts'
import { inboxContract } from '../../src/testing/contract/inbox.ts'
import { failuresOf, type Wrong } from './failures-of.ts'

const subjectOf = (wrong: Wrong<Inbox>) => () => {
  const right = memoryInbox()
  const inbox: Inbox = {
    accept: (accepted, options) => right.accept(accepted, options),
    start: (handle, logger) => right.start(handle, logger),
    stats: () => right.stats(),
    close: (options) => right.close(options),
    deadLetters: right.deadLetters,
    ...wrong(right),
  }
  return { inbox }
}

/** An inbox in which every event is of the media that is named. */
const withMedia =
  (mediaOf: (accepted: AcceptedEvent) => string): Wrong<Inbox> =>
  (inbox) => ({
    accept: (accepted) => inbox.accept({ ...accepted, event: { ...accepted.event, mediaId: mediaOf(accepted) } }),
    start: (handle, logger) => inbox.start(handle, logger),
  })

/** An inbox that makes something else of the attempt or of its result. */
const withAttempts =
  (change: { attempt?: (attempt: Attempt) => Attempt; result?: (result: HandlingResult) => HandlingResult }) =>
  (inbox: Inbox): Partial<Inbox> => {
    const { attempt: changed = (attempt) => attempt, result = (result) => result } = change
    return {
      start: (handle, logger) =>
        inbox.start(
          async (event, receivedAt, attempt) => result(await handle(event, receivedAt, changed(attempt))),
          logger,
        ),
    }
  }

/** What is wrong, the inbox, and the test that says so. */
const wrongInboxes: [string, Wrong<Inbox>, string][] = [
  [
    'accepts everything',
    (inbox) => ({ accept: (accepted) => (inbox.accept(accepted) === 'overloaded' ? 'overloaded' : 'accepted') }),
    'accepts one of 20 concurrent events of one key',
  ],
  ['accepts nothing', () => ({ accept: () => 'duplicate' }), 'accepts an event and hands it over as it was given'],
  [
    'forgets the order',
    withMedia(({ event }) => event.key),
    'hands over the events of one media one after another, in order',
  ],
  ['handles all media as one', withMedia(() => 'media'), 'handles different media at the same time'],
  [
    'forgets which handlers have completed',
    withAttempts({ attempt: ({ number, signal }) => ({ number, signal, aborted: false, completed: [] }) }),
    'hands an event over again after the delay, with the handlers that have completed',
  ],
  [
    'does not count attempts',
    withAttempts({ attempt: ({ completed, signal }) => ({ number: 1, signal, aborted: false, completed }) }),
    'hands an event over again after the delay, with the handlers that have completed',
  ],
  [
    'retries at once',
    withAttempts({ result: (result) => (result.status === 'retry' ? { ...result, delayMs: 0 } : result) }),
    'does not hand an event over again before the delay is over',
  ],
  [
    'drops what cannot be handled',
    withAttempts({ result: (result) => (result.status === 'dead' ? { status: 'done' } : result) }),
    'counts its events',
  ],
  [
    'replays what it does not have',
    (inbox) => ({ deadLetters: { ...lettersOf(inbox), replay: () => true } }),
    'knows no dead letter of a key that it has not seen',
  ],
  [
    'lists the oldest dead letters first',
    (inbox) => ({
      deadLetters: { ...lettersOf(inbox), list: async () => (await inbox.deadLetters.list()).toReversed() },
    }),
    'lists dead letters from the newest, page by page',
  ],
  [
    'does not wait when it closes',
    (inbox) => ({ close: () => inbox.close({ timeoutMs: 0 }) }),
    'finishes what runs before it is closed',
  ],
  [
    'does not say what it could not finish',
    (inbox) => ({ close: (options) => inbox.close(options).then(() => ({ unfinished: [] })) }),
    'gives up on what runs too long, aborts it and reports it',
  ],
  [
    'does not abort what it gives up on',
    withAttempts({
      attempt: ({ number, completed }) => ({ number, completed, aborted: false, signal: new AbortController().signal }),
    }),
    'gives up on what runs too long, aborts it and reports it',
  ],
]

const lettersOf = ({ deadLetters }: Inbox): Inbox['deadLetters'] => ({
  list: (options) => deadLetters.list(options),
  get: (key) => deadLetters.get(key),
  replay: (key) => deadLetters.replay(key),
  discard: (key) => deadLetters.discard(key),
})

describe('the contract suite of inboxes', () => {
  test('passes an inbox that is right', async () => {
    const right = subjectOf(() => ({}))
    expect(await failuresOf((runner) => inboxContract(right, runner))).toEqual([])
  })

  test.concurrent.each(wrongInboxes)('catches an inbox that %s', async (_, wrong, caughtBy) => {
    expect(await failuresOf((runner) => inboxContract(subjectOf(wrong), runner), caughtBy)).toEqual([caughtBy])
  })
})
