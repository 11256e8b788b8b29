import { join } from 'node:path'
import { sqliteInbox } from '../../../src/inbox/sqlite.ts'
import { createReceiver, memoryInbox, type Receiver, unverified } from '../../../src/index.ts'
import { recordHandled } from './record-handled.ts'

/** Makes the receiver of a program, with the inbox that `INBOX` names. */
export function makeReceiver(): Receiver {
  const { FOLDER = '', INBOX } = process.env
  return createReceiver({
    verify: unverified(),
    inbox: INBOX === 'sqlite' ? sqliteInbox({ path: join(FOLDER, 'inbox.db') }) : memoryInbox(),
    retry: { baseMs: 50 },
  }).onAny(recordHandled)
}
