import { existsSync } from 'node:fs'
import { WebhookError } from '../../errors.ts'
import type { DeadLetter } from '../reading.ts'
import { inTransaction } from './driver.ts'
import { openFile } from './file.ts'

/** The number of events in the file of an inbox, by state. */
export interface InboxFileStats {
  /** Accepted and not finished, those being handled included. */
  readonly waiting: number
  /** Failed, waiting for the next attempt. */
  readonly retrying: number
  /** Dead letters, unreadable deliveries included. */
  readonly deadLetters: number
}

/** The file of an inbox, opened to look into it, also while another process handles its events. */
export interface InboxFile {
  /** Counts the events in the file by state. */
  stats(): InboxFileStats
  /** Lists, replays and discards dead letters. */
  readonly deadLetters: {
    list(options?: { readonly limit?: number; readonly offset?: number }): readonly DeadLetter[]
    get(key: string): DeadLetter | undefined
    /** Lists the keys of all dead letters, oldest first. */
    keys(): readonly string[]
    /** Replays a dead letter. The process that has the inbox open handles it within a second, or the next that opens it. */
    replay(key: string): boolean
    discard(key: string): boolean
  }
  /**
   * Runs `run`, which replays or discards some dead letters, in one commit. Take up to a hundred at a time: deliveries to
   * the process that has the inbox open wait meanwhile.
   */
  inOneCommit<T>(run: () => T): T
  /** Closes the file. */
  close(): void
}

/**
 * Opens the file of an inbox to look into it, and to replay or discard dead letters. It handles nothing. Do not call it
 * in a process whose inbox uses a `database` of another driver: two copies of SQLite release each other's locks.
 * @throws WebhookError `invalid_option` when there is no file, `unavailable` when it cannot be used
 */
export function openInboxFile(path: string): InboxFile {
  if (!existsSync(path)) throw new WebhookError('invalid_option', `there is no inbox file ${path}`)
  const { database, events, deadLetters, close } = openFile(path)
  // The process that has the inbox open copies the log into the file.
  database.exec('PRAGMA wal_autocheckpoint = 0')
  let isInCommit = false
  const inOneCommit = <T>(run: () => T): T => {
    if (isInCommit) return run()
    isInCommit = true
    try {
      return inTransaction(database, run)
    } finally {
      isInCommit = false
    }
  }
  return {
    stats: () => ({ ...events.counts(), deadLetters: deadLetters.size }),
    deadLetters: {
      list: (page) => deadLetters.list(page),
      get: (key) => deadLetters.get(key),
      keys: () => deadLetters.keys(),
      replay: (key) => inOneCommit(() => deadLetters.putBack(key) !== undefined || deadLetters.mark(key)),
      discard: (key) => inOneCommit(() => deadLetters.discard(key)),
    },
    inOneCommit,
    close,
  }
}
