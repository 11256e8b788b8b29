import { Readable } from 'node:stream'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { InboxAction } from '../../src/cli/commands/inbox/action.ts'
import { events } from '../../src/cli/commands/inbox/events.ts'
import { expected } from '../../src/cli/commands/inbox/expected.ts'
import { media } from '../../src/cli/commands/inbox/media.ts'
import { show } from '../../src/cli/commands/inbox/show.ts'
import { stats } from '../../src/cli/commands/inbox/stats.ts'
import type { InboxTarget } from '../../src/cli/commands/inbox/target.ts'
import { watch } from '../../src/cli/commands/inbox/watch.ts'
import { createScreen } from '../../src/cli/shared/screen.ts'
import type { InboxStats, InspectedInbox, OpenExpectation } from '../../src/inbox/reading.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { receiverWith } from '../receiver/listening-receiver.ts'
import { valuesOf } from './inbox-values.ts'

const noon = Date.parse('2026-03-01T12:00:00Z')
const minute = 60_000
const target: InboxTarget = { kind: 'file', address: 'inbox.db', name: undefined }

beforeEach(() => {
  vi.useFakeTimers({ now: noon })
})
afterEach(() => {
  vi.useRealTimers()
})

/** Runs an action over an inbox until it prints, and returns its exit code and what it prints. */
async function run(action: InboxAction, inbox: Partial<InspectedInbox>, values = valuesOf(), ...words: string[]) {
  let output = ''
  const interrupted = new AbortController()
  const stdout = {
    write(text: string) {
      output += text
      interrupted.abort()
    },
  }
  const { signal } = interrupted
  const screen = createScreen({ stdout, stderr: stdout, stdin: Readable.from([]), env: {}, signal })
  const code = await action.run?.({
    inbox: { pauses: { list: () => [] }, ...inbox } as unknown as InspectedInbox,
    target,
    values,
    words,
    screen,
  })
  return { code, output }
}

const open = (rule: string, mediaId: string, inMinutes: number): OpenExpectation => ({
  rule,
  mediaId,
  beganAt: new Date(noon - 3 * minute),
  dueAt: new Date(noon + inMinutes * minute),
})

const counts: InboxStats = { waiting: 0, running: 0, retrying: 0, deadLetters: 0 }

/** An inbox with these expectations. */
const expecting = (...all: readonly OpenExpectation[]): Partial<InspectedInbox> => ({
  expected: (limit = 100) => all.slice(0, limit),
  stats: () => ({ ...counts, ...(all.length > 0 && { expected: all.length }) }),
  pauses: { list: async () => [], pause: async () => false, resume: async () => false },
})

/** The inbox of a receiver whose expectation of the end of an encoding is overdue. */
async function overdueInbox(handler: () => void): Promise<Partial<InspectedInbox>> {
  const receiver = receiverWith({ retry: { attempts: 1 } })
  const { inbox } = receiver
  const rule = { then: 'encoding.finished', within: '10 min', name: 'encoded' } as const
  receiver.expect('file.received', rule, handler)
  await deliver(receiver, samplePayload('file.received', { media_id: 'm1' }))
  await vi.advanceTimersByTimeAsync(15 * minute)
  return {
    stats: () => inbox.stats(),
    history: async (mediaId) => inbox.history?.(mediaId) ?? [],
    deadLetters: inbox.deadLetters as InspectedInbox['deadLetters'],
    ...(inbox.events && { events: inbox.events }),
  }
}

test('inbox expected lists what is expected, and leads to the events of the media item', async () => {
  const inbox = expecting(open('encoded', 'a film', 5), open('published\u001b[31m', 'm2\n', 90))
  expect((await run(expected, inbox)).output.split('\n')).toEqual([
    'due                                   rule                 began                                 media',
    '2026-03-01T12:05:00.000Z (in 5 min)   encoded              2026-03-01T11:57:00.000Z (3 min ago)  a film',
    '2026-03-01T13:30:00.000Z (in 90 min)  published\\u{1b}[31m  2026-03-01T11:57:00.000Z (3 min ago)  m2\\u{a}',
    '2 of 2 open expectations',
    "The events of one: npx media-webhooks inbox inbox.db media 'a film'",
    '',
  ])
})

test('inbox expected lists as many as it is told', async () => {
  const inbox = expecting(open('encoded', 'm1', 5), open('encoded', 'm2', 6))
  const { output } = await run(expected, inbox, valuesOf({ limit: 1 }))
  expect(output).toContain('m1\n1 of 2 open expectations\n')
  expect(output).not.toContain('m2')
})

test('inbox expected prints whole expectations with --json', async () => {
  const { output } = await run(expected, expecting(open('encoded', 'm1', 5)), valuesOf({ json: true }))
  const [beganAt, dueAt] = ['2026-03-01T11:57:00.000Z', '2026-03-01T12:05:00.000Z']
  expect(JSON.parse(output)).toEqual({ expected: [{ rule: 'encoded', mediaId: 'm1', beganAt, dueAt }], total: 1 })
})

test('inbox expected says that nothing is expected', async () => {
  expect(await run(expected, expecting())).toEqual({ code: 0, output: '0 of 0 open expectations\n' })
})

test('inbox stats counts what is expected, if there is something', async () => {
  const events = { states: ['waiting'] } as unknown as InspectedInbox['events']
  const inbox = { ...expecting(open('encoded', 'm1', 5)), events }
  expect((await run(stats, inbox)).output).toMatch(/\ndead letters {2}0\nexpected +1\n$/)
  expect(JSON.parse((await run(stats, inbox, valuesOf({ json: true }))).output)).toMatchObject({ expected: 1 })
  expect((await run(stats, { ...expecting(), events })).output).not.toContain('expected')
})

test('inbox watch shows how many are expected', async () => {
  const events = { states: [] } as unknown as InspectedInbox['events']
  const deadLetters = { list: () => [] } as unknown as InspectedInbox['deadLetters']
  const { output } = await run(watch, { ...expecting(open('encoded', 'm1', 5)), events, deadLetters })
  expect(output).toBe('2026-03-01T12:00:00.000Z  waiting 0, retrying 0, dead letters 0, expected 1\n')
})

test('what is overdue is an event of its media item, whose story names the rule', async () => {
  const inbox = await overdueInbox(() => {
    throw new Error('no operator answers')
  })
  const { output: story } = await run(media, inbox, valuesOf(), 'm1')
  expect(story).toMatch(
    /^[0-9a-f]{8} {2}2026-03-01T12:10:00\.000Z {2}overdue \(dead letter\) {2}expectation\.overdue {2}m1 +1 +'overdue:encoded:.*\n {2}encoded: Error: no operator answers$/m,
  )
  const { output: list } = await run(events, inbox, valuesOf({ type: 'expectation.overdue' }))
  expect(list).toMatch(/expectation\.overdue {2}m1 .*\n.*\n1 event\n/)
  const [, key = ''] = /'(overdue:.*)'$/m.exec(story) ?? []
  const { code, output } = await run(show, inbox, valuesOf(), key)
  expect(code).toBe(0)
  expect(output).toMatch(
    /^type +expectation\.overdue\nrule +encoded\nbegun by +file\.received\nexpected +encoding\.finished: .*\nmedia +m1\n/m,
  )
  expect(output).toMatch(/^due +2026-03-01T12:10:00\.000Z \(5 min ago\)$/m)
  expect(output).toContain('\npayload of the event that began it:\n{\n  "type": "file.received"')
})
