import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { eventOf } from '../../support/inbox.ts'
import { postJson } from '../../support/post-json.ts'
import { drivers, freshPath, started } from './sqlite-tests.ts'
import { findStrace, traceProgram } from './strace.ts'

describe.skipIf(!findStrace())('before an event is answered 200', () => {
  test('its write has reached the disk', async () => {
    const path = await freshPath()
    const { line: url, calls } = await traceProgram('serving', path, join(dirname(path), 'calls'))
    const media = Array.from({ length: 5 }, () => crypto.randomUUID())
    for (const mediaId of media) {
      const payload = { type: 'encoding.finished', media_id: mediaId, emitted_at: '2026-03-01T12:00:00Z' }
      const { status } = await postJson(url, payload)
      expect(status).toBe(200)
    }
    const made = await calls()
    const find = (from: number, holds: (call: (typeof made)[number]) => boolean) =>
      made.findIndex((call, index) => index > from && holds(call))
    for (const mediaId of media) {
      const isOf = ({ text }: { text: string }) => text.includes(mediaId)
      const written = find(-1, (call) => call.file === `${path}-wal` && isOf(call))
      const synced = find(
        written,
        ({ name, file, text }) => /^f(data)?sync$/.test(name) && file === `${path}-wal` && / = 0$/.test(text),
      )
      const answered = find(written, ({ text }) => text.includes('HTTP/1.1 200'))
      expect(written).toBeGreaterThan(-1)
      expect(synced).toBeGreaterThan(written)
      expect(answered).toBeGreaterThan(synced)
    }
  })
})

test.each(Object.entries(drivers))(
  'each commit waits for the disk, on macOS also for its cache, with %s',
  async (_, open) => {
    const database = open(await freshPath())
    // The application may have set these values.
    database.exec('PRAGMA synchronous = OFF; PRAGMA fullfsync = OFF; PRAGMA busy_timeout = 4000')
    const { inbox } = started({ database })
    await inbox.accept(eventOf('one'))
    const setting = (name: string) => database.prepare(`PRAGMA ${name}`).get()
    expect(setting('main.journal_mode')).toMatchObject({ journal_mode: 'wal' })
    // FULL
    expect(setting('main.synchronous')).toMatchObject({ synchronous: 2 })
    expect(setting('fullfsync')).toMatchObject({ fullfsync: 1 })
    // SQLite's own waiting would block the event loop.
    expect(setting('busy_timeout')).toMatchObject({ timeout: 0 })
  },
)
