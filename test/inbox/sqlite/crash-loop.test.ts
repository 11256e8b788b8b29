import { existsSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { openFile } from '../../../src/inbox/sqlite/file.ts'
import { openInboxFile } from '../../../src/inbox/sqlite.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { startProgram } from './processes/start.ts'
import { crashed, freshPath, receiverOver } from './sqlite-tests.ts'

interface Waiting {
  readonly mediaId: string
  readonly title: string
}

/** Makes a file in which events wait: one that a crash left while its first 16 events ran, or one that was closed. */
async function fileWith(events: readonly Waiting[], hasCrashed = true): Promise<string> {
  const path = await freshPath()
  const receiver = receiverOver({ path })
  receiver.onAny((_, { signal }) => new Promise((_, reject) => signal.addEventListener('abort', reject)))
  for (const [index, { mediaId, title }] of events.entries()) {
    const emittedAt = new Date(Date.UTC(2026, 2, 1, 12, 0, index)).toISOString()
    await deliver(receiver, samplePayload('encoding.finished', { media_id: mediaId, title, emitted_at: emittedAt }))
  }
  const copy = hasCrashed ? await crashed(path) : path
  await receiver.close({ timeoutMs: 0 })
  return copy
}

const harmless = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ mediaId: `media ${i % 20}`, title: `harmless ${i}` }))

const notesOf = (path: string) =>
  existsSync(`${path}-notes`) ? readFileSync(`${path}-notes`, 'utf8').trimEnd().split('\n') : []

async function deadIn(path: string): Promise<(string | undefined)[]> {
  const file = openInboxFile(path)
  try {
    return (await file.deadLetters.list()).map(({ event }) => event?.title)
  } finally {
    file.close()
  }
}

/** Starts processes on a file until one has handled everything. Returns how many crashed: none may end otherwise. */
async function crashesUntilIdle(path: string, handlerMs: number, afterEach = () => {}): Promise<number> {
  for (let crashes = 0; ; crashes++) {
    const { child, ended } = await startProgram('crashing', [path, `${path}-notes`, handlerMs])
    const idle = new Promise<boolean>((resolve) => {
      child.on('message', (message) => message === 'idle' && resolve(true))
    })
    const ending = await Promise.race([ended, idle])
    afterEach()
    if (ending === true) return crashes
    expect(ending).toEqual([null, 'SIGKILL'])
  }
}

/** Two media items with many events, then the event that crashes its process, then more than 16 others. */
const behindHotMedia: readonly Waiting[] = [
  ...Array.from({ length: 80 }, (_, i) => ({ mediaId: `hot ${i % 2}`, title: `hot ${i}` })),
  { mediaId: 'of the fatal event', title: 'fatal' },
  ...harmless(60),
]

/** Media items that have their events together, one of which crashes its process. */
const inBlocks: readonly Waiting[] = Array.from({ length: 300 }, (_, i) => ({
  mediaId: `media ${Math.floor(i / 3)}`,
  title: i === 181 ? 'fatal' : `harmless ${i}`,
}))

describe('in a crash loop', () => {
  test.each([
    ['behind two hot media items', behindHotMedia],
    ['among many media items', inBlocks],
  ])('an event %s becomes a dead letter after ten crashes, and no other does', async (_, events) => {
    const path = await fileWith(events, false)
    expect(await crashesUntilIdle(path, 20)).toBe(10)
    expect(await deadIn(path)).toEqual(['fatal'])
    expect(new Set(notesOf(path)).size).toBe(events.length - 1)
  })

  test('that is over before anything has started, no event becomes a dead letter', async () => {
    const path = await fileWith(harmless(3))
    for (let starts = 1; starts <= 20; starts++) await (await startProgram('booting', [path])).ended
    expect(await deadIn(path)).toEqual([])
    const { database, close } = openFile(path)
    const rows = database.prepare('SELECT crashes FROM inbox_event').all()
    close()
    expect(rows).toEqual(Array(3).fill({ crashes: 0 }))
    expect(await crashesUntilIdle(path, 0)).toBe(0)
    expect(new Set(notesOf(path)).size).toBe(3)
  })

  test('that no event causes, none becomes a dead letter', async () => {
    const path = await fileWith(harmless(5))
    for (let starts = 1; starts <= 11; starts++) {
      const { kill } = await startProgram('crashing', [path, `${path}-notes`, 1_000])
      await pause(300)
      await kill()
    }
    const { child } = await startProgram('crashing', [path, `${path}-notes`, 0])
    await new Promise<void>((resolve) => child.on('message', (message) => message === 'idle' && resolve()))
    expect(await deadIn(path)).toEqual([])
    expect(new Set(notesOf(path)).size).toBe(5)
  })

  test('that an event causes, only that one becomes a dead letter, and the others are handled meanwhile, in order', async () => {
    const path = await fileWith([
      ...harmless(10),
      { mediaId: 'media 0', title: 'fatal' },
      { mediaId: 'another', title: 'harmless 100' },
      ...harmless(100).slice(10),
    ])
    const handledAfter: number[] = []
    await crashesUntilIdle(path, 5, () => {
      handledAfter.push(notesOf(path).filter((title) => title.startsWith('harmless')).length)
    })
    console.log(`harmless events handled after each start: ${handledAfter.join(', ')}`)
    expect(await deadIn(path)).toEqual(['fatal'])
    const notes = notesOf(path)
    expect(new Set(notes).size).toBe(101)
    // All except the events of the media item whose event makes it crash, and those that were running.
    expect(handledAfter[2]).toBeGreaterThan(80)
    for (let media = 0; media < 20; media++) {
      const all = [...new Set(notes)].map((title) => Number(title.split(' ')[1]))
      const numbers = all.filter((number) => number % 20 === media && number < 100)
      expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
    }
  })
})
