import { Readable } from 'node:stream'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { NewsReader } from '../../src/cli/commands/inbox/news.ts'
import type { InboxTarget } from '../../src/cli/commands/inbox/target.ts'
import { watch } from '../../src/cli/commands/inbox/watch.ts'
import { createScreen } from '../../src/cli/shared/screen.ts'
import type { DeadLetter, EventRecord, EventState, InspectedInbox } from '../../src/inbox/reading.ts'
import { WebhookError } from '../../src/index.ts'
import { eventOf } from '../support/inbox.ts'
import { valuesOf } from './inbox-values.ts'

const at = (second: number) => new Date(1_772_366_400_000 + second * 1_000)

/** An event whose attempts failed at these seconds. */
const failed = (key: string, state: EventState, ...seconds: number[]): EventRecord => ({
  ...eventOf(key),
  key,
  type: 'encoding.finished',
  mediaId: 'm',
  state,
  attempts: seconds.length,
  completed: [],
  failedAttempts: seconds.map((second, index) => ({ number: index + 1, failures: [], failedAt: at(second) })),
})

const died = (key: string, second: number): DeadLetter => {
  const { event, receivedAt } = eventOf(key)
  return { key, event, receivedAt, attempts: 1, completed: [], failures: [], diedAt: at(second) }
}

/** An inbox that has what the test puts into it. */
function fakeInbox() {
  const has = { events: [] as EventRecord[], deadLetters: [] as DeadLetter[], error: undefined as Error | undefined }
  const stats = () => {
    if (has.error !== undefined) throw has.error
    return { waiting: 0, running: 0, retrying: has.events.length, deadLetters: has.deadLetters.length }
  }
  const inbox = {
    stats,
    events: {
      states: ['waiting', 'running', 'retrying', 'dead', 'handled'],
      list: ({ state }: { state: EventState }) => ({ events: has.events.filter((each) => each.state === state) }),
    },
    deadLetters: { list: () => has.deadLetters },
  }
  return { has, inbox: inbox as unknown as InspectedInbox }
}

describe('the news of an inbox', () => {
  test('are empty at first, and then have what has failed or died since', async () => {
    const { has, inbox } = fakeInbox()
    has.events = [failed('one', 'retrying', 1)]
    has.deadLetters = [died('old', 0)]
    const reader = new NewsReader(inbox)
    expect(await reader.read()).toMatchObject({
      failures: [],
      deadLetters: [],
      counts: { retrying: 1, deadLetters: 1 },
    })
    has.events = [failed('two', 'handled', 3), failed('one', 'running', 1, 2)]
    has.deadLetters = [died('new', 4), died('old', 0)]
    const { failures, deadLetters } = await reader.read()
    expect(failures.map(({ event, attempt }) => [event.key, attempt.number])).toEqual([
      ['one', 2],
      ['two', 1],
    ])
    expect(deadLetters.map(({ key }) => key)).toEqual(['new'])
    expect(await reader.read()).toMatchObject({ failures: [], deadLetters: [] })
  })

  test('do not include what comes back into sight because newer events have ended', async () => {
    const { has, inbox } = fakeInbox()
    has.deadLetters = [died('newer', 100)]
    const reader = new NewsReader(inbox)
    await reader.read()
    has.deadLetters = [died('older', 10)]
    expect((await reader.read()).deadLetters).toEqual([])
    // The clock of another server can be a little behind.
    has.deadLetters = [died('late', 95), died('older', 10)]
    expect((await reader.read()).deadLetters.map(({ key }) => key)).toEqual(['late'])
  })
})

describe('watch', () => {
  const target: InboxTarget = { kind: 'redis', address: 'redis://:secret-pw@127.0.0.1', name: undefined }

  function watching(inbox: InspectedInbox) {
    const written = { output: '', errors: '' }
    const ended = new AbortController()
    const screen = createScreen({
      stdout: { write: (text) => (written.output += text) },
      stderr: { write: (text) => (written.errors += text) },
      stdin: Readable.from([]),
      env: {},
      signal: ended.signal,
    })
    const code = watch.run?.({ inbox, target, values: valuesOf(), words: [], screen }) as Promise<number>
    onTestFinished(() => ended.abort())
    return { written, code, interrupt: () => ended.abort() }
  }

  test('continues after an outage, and reports it once', async () => {
    const { has, inbox } = fakeInbox()
    const { written, code, interrupt } = watching(inbox)
    await vi.waitUntil(() => written.output.includes('retrying 0'))
    const cause = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1'), { code: 'ECONNREFUSED' })
    has.error = new WebhookError('unavailable', 'Redis gave no answer, or an error', { cause })
    await vi.waitUntil(() => written.errors !== '')
    has.error = undefined
    has.events = [failed('one', 'retrying', 1)]
    await vi.waitUntil(() => written.output.includes('retrying 1'))
    interrupt()
    expect(await code).toBe(0)
    expect(written.errors).toMatch(
      /^trying again: redis:\/\/…@127\.0\.0\.1: Redis gave no answer, .*\(is the server running/,
    )
    expect(written.errors.split('\n')).toHaveLength(2)
    expect(written.errors).not.toContain('secret-pw')
    expect(written.output).toMatch(/\d{4}-.*Z {2}failed in attempt 1: encoding\.finished, media m, key one\n/)
  })

  test('fails if the inbox cannot be read at the start', async () => {
    const { has, inbox } = fakeInbox()
    has.error = new WebhookError('unavailable', 'no answer')
    await expect(watching(inbox).code).rejects.toBe(has.error)
  })
})
