import { expect, test } from 'vitest'
import type { Attempt, AttemptResult, Inbox, InboxDefinition } from '../../src/inbox/inbox.ts'
import type { StoredPauses } from '../../src/inbox/operations/pauses.ts'
import type { Operations, Pause, PauseOptions, Pauses, ResumeOptions } from '../../src/inbox/reading.ts'
import { sqliteInbox } from '../../src/inbox/sqlite.ts'
import { temporaryFile } from '../inbox/sqlite/sqlite-tests.ts'
import { everyFeature } from './every-feature.ts'
import { failuresOf, type Wrong } from './failures-of.ts'
import { inboxContract } from './suites/inbox.ts'

const transactions = { write() {}, texts: () => [] }

const subjectOf = (wrong: Wrong<InboxDefinition>) => async () => {
  const { path, remove } = await temporaryFile()
  const right = sqliteInbox({ path })
  return { inbox: { ...right, ...wrong(right) } as InboxDefinition, transactions, close: remove }
}

/** An inbox whose pauses are wrong in some way. */
const withPauses =
  (wrong: (pauses: Pauses, inbox: Inbox) => Partial<Pauses>): Wrong<InboxDefinition> =>
  (definition) => ({
    open(host) {
      const inbox = definition.open(host)
      const right = inbox.pauses as StoredPauses
      const pauses = {
        read: () => right.read(),
        list: () => right.list(),
        pause: (options?: PauseOptions) => right.pause(options),
        resume: (options?: ResumeOptions) => right.resume(options),
        ...wrong(right, inbox),
      }
      return Object.assign(inbox, { pauses })
    },
  })

/** An inbox that changes attempts or their results. */
const withAttempts =
  (
    changed: (attempt: Attempt) => Attempt,
    result: (result: AttemptResult) => AttemptResult = (each) => each,
  ): Wrong<InboxDefinition> =>
  (definition) => ({
    open: ({ handle, ...host }) =>
      definition.open({
        ...host,
        handle: async (accepted, attempt) => result(await handle(accepted, changed(attempt))),
      }),
  })

/** An inbox that takes an attempt which left a handler out for one that failed. */
const counting = withAttempts(
  (attempt) => attempt,
  (result) => (result.status === 'retry' ? { ...result, counts: undefined } : result),
)

/** Lists pauses that no attempt obeys. */
function unheeded(): Partial<Pauses> {
  const all = new Map<string | undefined, Pause>()
  return {
    list: () => [...all.values()],
    pause({ handler, by } = {}) {
      const isNew = !all.has(handler)
      if (isNew) all.set(handler, { handler, by, since: new Date() })
      return isNew
    },
    resume: ({ handler } = {}) => all.delete(handler),
  }
}

const begins = 'begins no attempt while it is paused, and goes on when it is resumed'
const tells = 'tells attempts which handlers are paused, and does not count those that left one out'
const passing = 'lets later events of a media item pass one that waits for its paused handlers'
const twice = 'pauses nothing twice, and resumes only what is paused'

/** An inbox whose operations are wrong in some way. */
const withOperations =
  (wrong: (operations: Operations) => Partial<Operations>): Wrong<InboxDefinition> =>
  (definition) => ({
    open(host) {
      const inbox = definition.open(host)
      const right = inbox.operations as Operations
      const operations: Operations = {
        add: (operation) => right.add(operation),
        list: (query) => right.list(query),
        ...wrong(right),
      }
      return Object.assign(inbox, { operations })
    },
  })

const operated = 'keeps what operators did, the newest first, and finds it by event'

const wrongPauses: [string, Wrong<InboxDefinition>, string, string][] = [
  [
    'finds what operators did to any event',
    withOperations((operations) => ({ list: ({ limit } = {}) => operations.list({ limit }) })),
    operated,
    'to deeply equal',
  ],
  [
    'forgets the reason of an operation',
    withOperations((operations) => ({ add: ({ reason: _, ...operation }) => operations.add(operation) })),
    operated,
    "to deeply equal [ 'ana', 'c1', 'it\\'s fixed' ]",
  ],
  ['lists its pauses and obeys none', withPauses(unheeded), begins, 'expected false to be true'],
  ['does not store a pause', withPauses(() => ({ pause: () => true })), begins, "to deeply equal [ undefined, 'ana' ]"],
  [
    'resumes nothing',
    withPauses((pauses) => ({ resume: async () => (await pauses.list()).length > 0 })),
    begins,
    'to deeply equal []',
  ],
  [
    'forgets who paused it',
    withPauses((pauses) => ({ pause: ({ by: _, ...options } = {}) => pauses.pause(options) })),
    begins,
    "expected [ undefined, undefined ] to deeply equal [ undefined, 'ana' ]",
  ],
  [
    'retries while it is paused',
    withPauses((pauses, inbox) => ({
      async pause(options) {
        setTimeout(async () => {
          await pauses.resume()
          await inbox.events?.retryNow('one')
        }, 20)
        return pauses.pause(options)
      },
    })),
    'makes no retry while it is paused',
    'expected false to be true',
  ],
  [
    'does not tell attempts which handlers are paused',
    withAttempts(({ number, completed, failures, signal }) => ({
      number,
      completed,
      failures,
      signal,
      aborted: false,
    })),
    tells,
    'to deeply equal [ true, false ]',
  ],
  [
    'counts attempts that left a handler out',
    counting,
    tells,
    "expected [ 2, [ 'b' ] ] to deeply equal [ 1, [ 'b' ] ]",
  ],
  ['makes the next attempt at once when a handler was left out', counting, passing, "expected 'old' to be 'later'"],
  [
    'pauses again what is paused',
    withPauses((pauses) => ({
      async pause(options) {
        await pauses.resume(options?.handler === undefined ? {} : { handler: options.handler })
        return pauses.pause(options)
      },
    })),
    twice,
    'expected true to be false',
  ],
  [
    'takes the pause of a handler for one of all',
    withPauses((pauses) => ({ pause: ({ by } = {}) => pauses.pause({ ...(by !== undefined && { by }) }) })),
    tells,
    "to deeply equal [ [ 'a', 'ana' ] ]",
  ],
  [
    'ends every pause when it is resumed',
    withPauses((pauses) => ({
      async resume(options) {
        const wasPaused = await pauses.resume(options)
        for (const { handler } of wasPaused ? await pauses.list() : [])
          await pauses.resume(handler === undefined ? {} : { handler })
        return wasPaused
      },
    })),
    twice,
    "to deeply equal [ 'unknown' ]",
  ],
]

test('The contract suite passes a correct inbox that can be paused', async () => {
  for (const name of [begins, tells, passing, twice])
    expect(
      await failuresOf(
        (runner) =>
          inboxContract(
            subjectOf(() => ({})),
            runner,
            everyFeature,
          ),
        name,
      ),
    ).toEqual({})
})

test.concurrent.each(wrongPauses)(
  'The contract suite catches an inbox that %s',
  async (_, wrong, caughtBy, message) => {
    const failures = await failuresOf((runner) => inboxContract(subjectOf(wrong), runner, everyFeature), caughtBy)
    expect(failures).toEqual({ [caughtBy]: expect.stringContaining(message) })
  },
)
