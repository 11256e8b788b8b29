import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { postgresInbox } from '../src/inbox/postgres.ts'
import { sqliteInbox } from '../src/inbox/sqlite.ts'
import { type Inbox, type InboxDefinition, memoryInbox } from '../src/index.ts'
import type { Arguments } from './arguments.ts'

/** The receiver's inbox and where it stores events. */
export interface Storage {
  readonly inbox: InboxDefinition
  /** The place to show to the user. */
  readonly place: string
  /** Removes the temporary file, if there is one. */
  remove(): Promise<void>
}

/** Chooses the inbox, and makes a folder for its file unless one was given. */
export async function prepareStorage({ inbox, inboxFile, inboxUrl = '' }: Arguments): Promise<Storage> {
  const nothing = async () => {}
  if (inbox === 'memory') return { inbox: memoryInbox(), place: 'in memory', remove: nothing }
  if (inbox === 'postgres') {
    const schema = 'media_webhooks_demo'
    return {
      inbox: postgresInbox({ connection: inboxUrl, schema }),
      place: `Postgres, schema ${schema}`,
      remove: nothing,
    }
  }
  if (inboxFile !== undefined) return { inbox: sqliteInbox({ path: inboxFile }), place: inboxFile, remove: nothing }
  const folder = await mkdtemp(join(tmpdir(), 'media-webhooks-'))
  const path = join(folder, 'inbox.db')
  return { inbox: sqliteInbox({ path }), place: path, remove: () => rm(folder, { recursive: true }) }
}

/** Resolves when the inbox has nothing to do, or after 5 s. The verdict then shows what is missing. */
export async function inboxEmpty(inbox: Inbox): Promise<void> {
  const deadline = performance.now() + 5_000
  while (performance.now() < deadline) {
    const { waiting, running, retrying } = await inbox.stats()
    if (waiting + running + retrying === 0) return
    await pause(5)
  }
}
