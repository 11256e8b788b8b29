import { existsSync } from 'node:fs'
import { WebhookError } from '../../errors.ts'
import { sleep } from '../../internal/timers.ts'
import { minuteOf, toActivity } from '../operations/activity.ts'
import { historyOf } from '../operations/event-query.ts'
import { StoredPauses } from '../operations/pauses.ts'
import { type Replayer, replayInSteps } from '../operations/replay-all.ts'
import type {
  ActivityMinute,
  DeadLetter,
  DeadLetters,
  EventPage,
  EventQuery,
  EventRecord,
  InboxEvents,
  InboxStats,
  OpenExpectation,
  Pauses,
  ReadableInbox,
  ReplayAllOptions,
  ReplayReport,
} from '../reading.ts'
import { inTransaction } from '../sqlite-tables/database.ts'
import type { SqliteDeadLetters } from '../sqlite-tables/dead-letters.ts'
import { SqliteEventReader } from '../sqlite-tables/event-reader.ts'
import { SqlitePauses } from '../sqlite-tables/pauses.ts'
import { minutesOf } from './activity.ts'
import { openFile } from './file.ts'

/**
 * Maximum number of dead letters that are replayed in one commit. The deliveries to the process that has the inbox open
 * wait for it.
 */
const largestStep = 100

/** The number of events in the file of an inbox, by state. */
export interface InboxFileStats extends InboxStats {
  /** Accepted and not finished, those being handled included. */
  readonly waiting: number
  /** Always 0: only the process that handles the events knows which of them are running. They count as waiting. */
  readonly running: 0
  /** Failed, waiting for the next attempt. */
  readonly retrying: number
  /** Dead letters, unreadable deliveries included. */
  readonly deadLetters: number
  /** The time since which the oldest event that counts as waiting has waited. */
  readonly oldestWaitingAt?: Date | undefined
}

/** The dead letters in the file of an inbox, newest first. */
export interface InboxFileDeadLetters extends DeadLetters {
  list(options?: { readonly limit?: number; readonly offset?: number }): readonly DeadLetter[]
  get(key: string): DeadLetter | undefined
  /** Lists the keys of all dead letters, oldest first. */
  keys(): readonly string[]
  /** Replays a dead letter. The process that has the inbox open handles it within a second, or the next that opens it. */
  replay(key: string): boolean
  discard(key: string): boolean
  /**
   * Replays the dead letters that there are now, oldest first, those of a type or a time if you name one. It does not know
   * how many events may wait in the inbox. Unreadable deliveries are parsed by the process that has the inbox open; those
   * that still cannot be parsed stay, although they count as replayed here.
   * @throws WebhookError `invalid_option`
   */
  replayAll(options?: ReplayAllOptions): Promise<ReplayReport>
}

/** The events in the file of an inbox. */
export interface InboxFileEvents extends InboxEvents {
  list(query?: EventQuery): Promise<EventPage>
  get(key: string): EventRecord | undefined
  /**
   * Makes the next attempt of an event due, if it waits for one. The process that has the inbox open starts it within a
   * second, or the next that opens it. Returns `false` if no event with that key waits for its next attempt.
   */
  retryNow(key: string): boolean
}

/** The file of an inbox, opened to read it, also while another process handles its events. */
export interface InboxFile extends ReadableInbox {
  /** Counts the events in the file by state. */
  stats(): InboxFileStats
  readonly deadLetters: InboxFileDeadLetters
  /** Lists events, and retries them. The file does not say which are running: those are `waiting` here. */
  readonly events: InboxFileEvents
  history(mediaId: string): Promise<readonly EventRecord[]>
  /** Lists the `limit` (100 by default) open expectations that are due first. */
  expected(limit?: number): readonly OpenExpectation[]
  /**
   * Returns the minutes since then in which something was done, oldest first, of all processes. The process that has the
   * inbox open writes its numbers every 5 s.
   */
  activity(since: Date): readonly ActivityMinute[]
  /** Pauses and resumes the handling of events. The process that has the inbox open obeys within a second. */
  readonly pauses: Pauses
  /**
   * Runs `run`, which replays or discards some dead letters, in one commit. Take up to a hundred at a time: deliveries to
   * the process that has the inbox open wait meanwhile.
   */
  inOneCommit<T>(run: () => T): T
  /** Closes the file. */
  close(): void
}

/**
 * Opens the file of an inbox to read it, to replay or discard dead letters, and to retry events. It handles nothing.
 * Do not call it in a process whose inbox uses a `database` of another driver: two copies of SQLite release each other's
 * locks.
 * @throws WebhookError `invalid_option` when there is no file, `unavailable` when it cannot be used
 */
export function openInboxFile(path: string): InboxFile {
  if (!existsSync(path)) throw new WebhookError('invalid_option', `there is no inbox file ${path}`)
  const file = openFile(path)
  const { database, events, deadLetters } = file
  // The process that has the inbox open copies the log into the file.
  database.exec('PRAGMA wal_autocheckpoint = 0')
  let isClosed = false
  const checkOpen = () => {
    if (isClosed) throw new WebhookError('closing', 'the file is closed')
  }
  let isInCommit = false
  const inOneCommit = <T>(run: () => T): T => {
    if (isInCommit) return run()
    checkOpen()
    isInCommit = true
    try {
      return inTransaction(database, run)
    } finally {
      isInCommit = false
    }
  }
  const reader = new SqliteEventReader(file, { current: () => undefined, checkOpen })
  const readMinutes = minutesOf(database)
  const pauses = new SqlitePauses(database)
  const replay = (key: string) => inOneCommit(() => deadLetters.putBack(key) !== undefined || deadLetters.mark(key))
  return {
    stats: () => ({ ...events.counts(), running: 0, deadLetters: deadLetters.size, ...events.expectations.counts() }),
    deadLetters: {
      list: (options) => deadLetters.list(options),
      get: (key) => deadLetters.get(key),
      keys: () => deadLetters.keys(),
      replay,
      discard: (key) => inOneCommit(() => deadLetters.discard(key)),
      replayAll: (options) =>
        replayInSteps(
          {
            largestStep,
            keys: (matches) => keysOf(deadLetters, matches),
            replay: (keys) => inOneCommit(() => keys.filter(replay)),
          },
          options,
        ),
    },
    events: {
      states: ['waiting', 'retrying', 'dead', 'handled'],
      list: (query) => reader.list(query),
      get: (key) => reader.get(key),
      retryNow: (key) => inOneCommit(() => events.askRetry(key)),
    },
    history: (mediaId) => historyOf(reader, mediaId),
    expected(limit) {
      checkOpen()
      return events.expectations.list(limit)
    },
    activity(since) {
      checkOpen()
      return toActivity(readMinutes(minuteOf(since.getTime())))
    },
    pauses: new StoredPauses({
      list() {
        checkOpen()
        return pauses.list()
      },
      add: (pause) => inOneCommit(() => pauses.add(pause)),
      remove: (handler) => inOneCommit(() => pauses.remove(handler)),
    }),
    inOneCommit,
    close() {
      isClosed = true
      file.close()
    },
  }
}

const keysOf = async (deadLetters: SqliteDeadLetters, matches: Parameters<Replayer['keys']>[0]) => {
  const keys: string[] = []
  for (let after = 0; ; await sleep(1)) {
    const slice = deadLetters.slice(after)
    for (const { deadLetter } of slice) if (matches(deadLetter)) keys.push(deadLetter.key)
    const last = slice.at(-1)
    if (last === undefined) return keys
    after = last.id
  }
}
