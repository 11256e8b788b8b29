import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { sqliteInbox } from '../src/inbox/sqlite.ts'
import { type Inbox, memoryInbox } from '../src/index.ts'
import type { Arguments } from './arguments.ts'

/** Where the receiver keeps events. */
export interface Storage {
  readonly inbox: Inbox
  /** For the user. */
  readonly place: string
  /** Removes what was made for this run alone. */
  remove(): Promise<void>
}

export async function openStorage({ inbox, inboxFile }: Arguments): Promise<Storage> {
  const nothing = async () => {}
  if (inbox === 'memory') return { inbox: memoryInbox(), place: 'in memory', remove: nothing }
  if (inboxFile !== undefined) return { inbox: sqliteInbox({ path: inboxFile }), place: inboxFile, remove: nothing }
  const folder = await mkdtemp(join(tmpdir(), 'media-webhooks-'))
  const path = join(folder, 'inbox.db')
  return { inbox: sqliteInbox({ path }), place: path, remove: () => rm(folder, { recursive: true }) }
}

/** Resolves when the inbox has nothing to do, or after 5 s: what is missing then shows in the verdict. */
export async function inboxEmpty(inbox: Inbox): Promise<void> {
  const deadline = performance.now() + 5_000
  while (performance.now() < deadline) {
    const { waiting, running, retrying } = await inbox.stats()
    if (waiting + running + retrying === 0) return
    await pause(5)
  }
}
