import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { events } from '../../src/cli/commands/inbox/events.ts'
import type { InboxTarget } from '../../src/cli/commands/inbox/target.ts'
import { createScreen } from '../../src/cli/shared/screen.ts'
import type { EventQuery, InspectedInbox } from '../../src/inbox/reading.ts'
import { eventOf } from '../support/inbox.ts'
import { valuesOf } from './inbox-values.ts'

const target: InboxTarget = { kind: 'file', address: 'inbox.db', name: undefined }

/** Runs `events` over an inbox with these pages. Its first page is number 0, and the cursor is the number of the next. */
async function eventsOf(pages: readonly (readonly string[])[]) {
  const asked: EventQuery[] = []
  const list = (query: EventQuery) => {
    asked.push(query)
    const number = Number(query.cursor ?? 0)
    const found = (pages[number] ?? []).map((key) => {
      const { event, receivedAt } = eventOf(key)
      const { type, mediaId } = event
      return { key, event, receivedAt, type, mediaId, state: 'handled', attempts: 1, completed: [], failedAttempts: [] }
    })
    return number + 1 < pages.length ? { events: found, cursor: `${number + 1}` } : { events: found }
  }
  let output = ''
  const stdout = { write: (text: string) => (output += text) }
  const signal = new AbortController().signal
  const screen = createScreen({ stdout, stderr: stdout, stdin: Readable.from([]), env: {}, signal })
  const inbox = { events: { states: ['handled'], list }, pauses: { list: () => [] } } as unknown as InspectedInbox
  const values = valuesOf({ type: 'encoding.finished' })
  const code = await events.run?.({ inbox, target, values, words: [], screen })
  return { code, output, asked }
}

test('continues the search while pages are empty', async () => {
  const { code, output, asked } = await eventsOf([[], [], ['one'], ['two']])
  expect(code).toBe(0)
  expect(output).toMatch(/ one\n1 event\nThere may be more\. Repeat the command with --cursor=3\n$/)
  expect(asked).toEqual(
    [undefined, '1', '2'].map((cursor) => ({ type: 'encoding.finished', ...(cursor && { cursor }) })),
  )
})

test('says that the last page is the last', async () => {
  const { output } = await eventsOf([[], []])
  expect(output).toBe('0 events\n')
})
