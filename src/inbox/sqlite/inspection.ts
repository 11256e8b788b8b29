import { existsSync } from 'node:fs'
import { WebhookError } from '../../errors.ts'
import type { DeadLetter } from '../inbox.ts'
import { openFile } from './file.ts'

/** How full the file of an inbox is. */
export interface InboxFileStats {
  /** Events that were accepted and not finished, those being handled included. */
  readonly waiting: number
  /** Failed, waiting for the next attempt. */
  readonly retrying: number
  readonly deadLetters: number
}

/** The file of an inbox, open beside the process that handles its events, if there is one. */
export interface InboxFile {
  stats(): InboxFileStats
  readonly deadLetters: {
    list(options?: { readonly limit?: number; readonly offset?: number }): readonly DeadLetter[]
    get(key: string): DeadLetter | undefined
    /** The event is handled by the process that has the inbox open, within a second, or by the next that opens it. */
    replay(key: string): boolean
    discard(key: string): boolean
  }
  close(): void
}

/**
 * Opens the file of an inbox to look at it and to replay or discard dead letters. It handles nothing.
 * Not in a process whose inbox was given a database of another driver: two copies of SQLite undo each other's locks.
 * @throws WebhookError `invalid_option` when there is no file, `unavailable` when it cannot be used
 */
export function openInboxFile(path: string): InboxFile {
  if (!existsSync(path)) throw new WebhookError('invalid_option', `there is no inbox file ${path}`)
  const { database, events, letters, close } = openFile(path, { exclusive: false })
  // Copying the log into the file is left to the process that has the inbox open.
  database.exec('PRAGMA wal_autocheckpoint = 0')
  return {
    stats: () => ({ ...events.counts(), deadLetters: letters.size }),
    deadLetters: letters,
    close,
  }
}
