import { setTimeout as pause } from 'node:timers/promises'
import Libsql from 'libsql'
import type { Handle } from '../../src/inbox/inbox.ts'
import type { SqliteDatabase } from '../../src/inbox/sqlite.ts'
import { answerWith } from '../child.ts'
import { hostOf } from '../host.ts'
import { sqliteInbox, temporaryFile } from '../ours.ts'

/** Stores an event. Resolves once it is on the disk. */
type Take = (key: string) => Promise<unknown>

export interface DurableQuestion {
  readonly events: number
  readonly callers: number
}

const path = temporaryFile()
const receivedAt = new Date()

const eventOf = (key: string) => {
  const fields = { type: 'encoding.finished', title: 'Holiday in the mountains.mp4', status: 'done' } as const
  const payload = { ...fields, emitted_at: '2026-03-01T12:00:00.123456789Z', media_id: key }
  return { ...fields, key, format: 'flat', mediaId: key, qualities: ['360p', '720p'], test: false, payload } as const
}

let handled = 0
let taken = 0

const takers: Record<string, () => Take> = {
  'sqlite inbox': () => {
    const handle: Handle = async () => {
      handled++
      return { status: 'done' }
    }
    const inbox = sqliteInbox({ path }).open(hostOf(handle))
    return async (key) => inbox.accept({ event: eventOf(key), receivedAt })
  },
  'a transaction each': () => {
    const database: SqliteDatabase = new Libsql(path)
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
    database.exec('CREATE TABLE event (key TEXT PRIMARY KEY, event TEXT)')
    const insert = database.prepare('INSERT OR IGNORE INTO event VALUES (?, ?)')
    return async (key) => {
      insert.run(key, JSON.stringify(eventOf(key)))
      handled++
    }
  },
}

const take = takers[process.argv[2] ?? '']?.()
if (!take) throw new Error(`Nothing is named ${process.argv[2]}`)

/** Measures events per second. The SQLite inbox also handles them in that time. */
async function measure({ events, callers }: DurableQuestion): Promise<number> {
  const start = performance.now()
  const end = taken + events
  const call = async () => {
    while (taken < end) await take?.(`${taken++} ${crypto.randomUUID()}`)
  }
  await Promise.all(Array.from({ length: callers }, call))
  while (handled < taken) await pause(1)
  return (events / (performance.now() - start)) * 1_000
}

answerWith<DurableQuestion>(measure)
