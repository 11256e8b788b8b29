import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { AttemptResult, Handle } from '../../../src/inbox/inbox.ts'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { sqliteInbox } from '../../../src/inbox/sqlite.ts'
import { eventOf, until } from '../../support/inbox.ts'
import { openWith } from '../../support/open-with.ts'
import { startProgram } from './processes/start.ts'
import { freshPath } from './sqlite-tests.ts'

/** Opens an inbox that is closed with the test. */
function open(path: string, handle: Handle) {
  const inbox = openWith(sqliteInbox({ path, maxWaiting: 1_000_000 }), handle)
  onTestFinished(async () => void (await inbox.close({ timeoutMs: 100 })))
  return inbox
}

const results: readonly AttemptResult[] = [
  { status: 'done' },
  { status: 'retry', delayMs: 600_000, completed: ['a'], failures: [] },
  { status: 'dead', completed: [], failures: [{ handler: 'a', message: 'Error: no' }] },
]

/** Accepts events, each of which is handled, waits for a retry or is a dead letter after 5 ms. */
function underLoad(path: string) {
  const handled = new Set<string>()
  const inbox = open(path, async ({ event: { key } }) => {
    await pause(5)
    const result = results[Number(key) % results.length] as AttemptResult
    if (result.status === 'done') handled.add(key)
    return result
  })
  const accepted: string[] = []
  let isOver = false
  let next = 0
  const senders = Array.from({ length: 20 }, async () => {
    while (!isOver) {
      const key = `${next++}`
      expect(await inbox.accept(eventOf(key))).toBe('accepted')
      accepted.push(key)
    }
  })
  return {
    inbox,
    accepted,
    handled,
    async stop() {
      isOver = true
      await Promise.all(senders)
    },
  }
}

function unfinishedIn(path: string): Set<string> {
  const database = openDatabase(path)
  expect(database.prepare('PRAGMA integrity_check').all()).toMatchObject([{ integrity_check: 'ok' }])
  const rows = database.prepare('SELECT event FROM inbox_event WHERE ended_at IS NULL AND died_at IS NULL').all() as {
    event: string
  }[]
  database.close()
  return new Set(rows.map(({ event }) => JSON.parse(event).key))
}

test('a copy that VACUUM INTO makes under load is an inbox with each event that was accepted before, or its key', async () => {
  const path = await freshPath()
  const copy = await freshPath()
  const { inbox, accepted, handled, stop } = underLoad(path)
  await until(async () => accepted.length > 500 && (await inbox.stats()).retrying > 100)
  const before = [...accepted]
  const { ended } = await startProgram('backup', [path, copy])
  await ended
  await stop()
  expect(accepted.length).toBeGreaterThan(before.length)

  const unfinished = unfinishedIn(copy)
  const handledAgain = new Set<string>()
  const restored = open(copy, async ({ event: { key } }) => {
    handledAgain.add(key)
    return { status: 'done' }
  })
  for (const key of before) expect(await restored.accept(eventOf(key)), key).toBe('duplicate')
  const dead = new Set((await restored.deadLetters.list({ limit: 100_000 })).map(({ key }) => key))
  expect(before.filter((key) => !unfinished.has(key) && !dead.has(key) && !handled.has(key))).toEqual([])
  await until(async () => {
    const { waiting, running } = await restored.stats()
    return waiting + running === 0
  })
  const { retrying } = await restored.stats()
  expect(retrying).toBeGreaterThan(100)
  expect(handledAgain.size + retrying).toBe(unfinished.size)
})
