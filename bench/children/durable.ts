import { setTimeout as pause } from 'node:timers/promises'
import Libsql from 'libsql'
import type { SqliteDatabase } from '../../src/inbox/sqlite.ts'
import { answerWith } from '../child.ts'
import { sqliteInbox, temporaryFile } from '../ours.ts'

/** Takes an event: resolves once it is on the disk. */
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
    const inbox = sqliteInbox({ path })
    void inbox.start(async () => {
      handled++
      return { status: 'done' }
    }, console)
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

/** Events per second, the handling of ours included. */
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
