import { existsSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { openInboxFile } from '../../../src/inbox/sqlite.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { startProgram } from './processes/start.ts'
import { crashed, freshPath, receiverOver } from './sqlite-tests.ts'

/** Makes the file that a crash leaves while its first 16 events are being handled. */
async function fileWith(events: readonly { readonly mediaId: string; readonly title: string }[]): Promise<string> {
  const path = await freshPath()
  const receiver = receiverOver({ path })
  receiver.onAny((_, { signal }) => new Promise((_, reject) => signal.addEventListener('abort', reject)))
  for (const [index, { mediaId, title }] of events.entries()) {
    const emittedAt = new Date(Date.UTC(2026, 2, 1, 12, 0, index)).toISOString()
    await deliver(receiver, samplePayload('encoding.finished', { media_id: mediaId, title, emitted_at: emittedAt }))
  }
  const copy = await crashed(path)
  await receiver.close({ timeoutMs: 0 })
  return copy
}

const harmless = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ mediaId: `media ${i % 20}`, title: `harmless ${i}` }))

const notesOf = (path: string) =>
  existsSync(`${path}-notes`) ? readFileSync(`${path}-notes`, 'utf8').trimEnd().split('\n') : []

function deadIn(path: string): (string | undefined)[] {
  const file = openInboxFile(path)
  try {
    return file.deadLetters.list().map(({ event }) => event?.title)
  } finally {
    file.close()
  }
}

describe('in a crash loop', () => {
  test('that no event causes, none becomes a dead letter', async () => {
    const path = await fileWith(harmless(5))
    for (let starts = 1; starts <= 11; starts++) {
      const { kill } = await startProgram('crashing', [path, `${path}-notes`, 1_000])
      await pause(300)
      await kill()
    }
    const { child } = await startProgram('crashing', [path, `${path}-notes`, 0])
    await new Promise<void>((resolve) => child.on('message', (message) => message === 'idle' && resolve()))
    expect(deadIn(path)).toEqual([])
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
    let isIdle = false
    for (let starts = 1; starts <= 20 && !isIdle; starts++) {
      const { child, ended } = await startProgram('crashing', [path, `${path}-notes`, 5])
      const idle = new Promise<void>((resolve) => {
        child.on('message', (message) => {
          if (message !== 'idle') return
          isIdle = true
          resolve()
        })
      })
      await Promise.race([ended, idle])
      handledAfter.push(notesOf(path).filter((title) => title.startsWith('harmless')).length)
    }
    console.log(`harmless events handled after each start: ${handledAfter.join(', ')}`)
    expect(deadIn(path)).toEqual(['fatal'])
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
