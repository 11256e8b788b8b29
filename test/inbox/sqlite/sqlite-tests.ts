import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Libsql from 'libsql'
import OldestLibsql from 'libsql-oldest'
import { onTestFinished } from 'vitest'
import { type SqliteDatabase, type SqliteInboxOptions, sqliteInbox } from '../../../src/inbox/sqlite.ts'
import { createReceiver, type ReceiverOptions, unverified } from '../../../src/index.ts'
import { canTest } from '../../support/can-test.ts'
import { openInbox } from '../../support/inbox.ts'
import { silent } from '../../support/silent.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

type Open = (path: string) => SqliteDatabase
type Database = new (path: string) => SqliteDatabase

/**
 * The drivers that are installed for this version of Node, each as a function that opens a database. better-sqlite3 is not
 * among the packages of this project, since it is compiled if no prebuilt one can be downloaded. To test with it, run
 * `npm install --no-save better-sqlite3`.
 */
export const drivers: Readonly<Record<string, Open>> = {
  libsql: (path) => new Libsql(path),
  ...installed('node:sqlite', ({ DatabaseSync }: { DatabaseSync: Database }) => DatabaseSync),
  ...installed('better-sqlite3', (Database: Database) => Database),
}

/** Opens a database with the oldest libsql that is supported. */
export const openOldestLibsql: Open = (path) => new OldestLibsql(path)

// Node has had it since 22.13.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
const inCi = major > 22 || (major === 22 && minor >= 13)
canTest('node:sqlite' in drivers, `Node ${process.version} has no node:sqlite`, 'use Node 22.13 or later', { inCi })

function installed<Module>(name: string, databaseOf: (module: Module) => Database) {
  try {
    const Database = databaseOf(createRequire(import.meta.url)(name))
    new Database(':memory:').close()
    return { [name]: (path: string) => new Database(path) }
  } catch {
    return {}
  }
}

/** Makes a path in a folder of its own. */
export async function temporaryFile() {
  const folder = await mkdtemp(join(tmpdir(), 'sqlite-inbox-'))
  return { path: join(folder, 'inbox.db'), remove: () => rm(folder, { recursive: true }) }
}

/** Makes a path in a folder that is removed with the test. */
export async function freshPath(): Promise<string> {
  return join(await temporaryFolder(), 'inbox.db')
}

/** Copies the file and its log as a crash at this moment would leave them. */
export async function crashed(path: string): Promise<string> {
  const copy = await freshPath()
  await copyFile(path, copy)
  await copyFile(`${path}-wal`, `${copy}-wal`)
  return copy
}

/** Opens an inbox whose attempts end as the test says. It is closed with the test. */
export function started(options: SqliteInboxOptions) {
  const lines: string[] = []
  const logged: { readonly message: string; readonly details: object }[] = []
  const log = (details: object, message: string) => {
    lines.push(message)
    logged.push({ message, details })
  }
  const logger = { debug() {}, info: log, warn: log, error: log }
  const opened = openInbox(sqliteInbox(options), logger)
  onTestFinished(async () => {
    opened.calls.finishAll()
    await opened.inbox.close({ timeoutMs: 1_000 })
  })
  return { ...opened, lines, logged }
}

/** Makes a receiver over an inbox. It is closed with the test. */
export function receiverOver(options: SqliteInboxOptions, receiverOptions: Partial<ReceiverOptions> = {}) {
  const inbox = sqliteInbox(options)
  const receiver = createReceiver({ verify: unverified(), inbox, logger: silent, ...receiverOptions })
  onTestFinished(async () => void (await receiver.close({ timeoutMs: 1_000 })))
  return receiver
}
