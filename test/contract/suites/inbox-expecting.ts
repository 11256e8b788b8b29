import type { AttemptResult } from '../../../src/inbox/inbox.ts'
import { eventOf, until } from '../../support/inbox.ts'
import { type Check, type InboxCheck, texts } from './inbox-check.ts'

const media = 'media'
const noon = Date.parse('2026-03-01T12:00:00Z')
/** Deadlines that a check waits for, and that it does not (ms). */
const soonMs = 300
const laterMs = 60_000
/** The first and the last time that a date can have, in ms after noon. */
const [earliest, latest] = [-8.64e15 - noon, 8.64e15 - noon]

const overdueKey = (key: string, rule: string): string => `overdue:${rule}:${key}`

interface Begin {
  readonly rule?: string
  /** When the event happened (ms after noon). */
  readonly at?: number
  /** The deadline (ms from now). */
  readonly dueInMs?: number
  readonly mediaId?: string
  /** How its attempt ends. */
  readonly result?: AttemptResult
}

async function begin({ inbox, calls, changes }: InboxCheck, key: string, options: Begin = {}) {
  const { rule = 'rule', at = 0, dueInMs = laterMs, mediaId = media, result } = options
  const dueAt = new Date(Date.now() + dueInMs)
  const overdue = { ...eventOf(overdueKey(key, rule), mediaId), receivedAt: dueAt }
  changes.set(key, { at: new Date(noon + at), begins: [{ rule, dueAt, overdue }], ends: [] })
  const acceptance = await inbox.accept(eventOf(key, mediaId))
  if (acceptance === 'accepted') (await calls.next()).finish(result)
  return { overdue, dueAt }
}

const end = (subject: InboxCheck, key: string, at: number, ...ends: string[]) => endIn(media, subject, key, at, ends)

async function endIn(
  mediaId: string,
  { inbox, calls, changes }: InboxCheck,
  key: string,
  at: number,
  ends: readonly string[],
): Promise<void> {
  changes.set(key, { at: new Date(noon + at), begins: [], ends })
  const acceptance = await inbox.accept(eventOf(key, mediaId))
  if (acceptance === 'accepted') (await calls.next()).finish()
}

const openOf = async ({ inbox }: InboxCheck): Promise<readonly string[]> =>
  ((await inbox.expected?.()) ?? ['none can be listed']).map((open) =>
    typeof open === 'string' ? open : `${open.rule} of ${open.mediaId}`,
  )

export function checkExpecting(check: Check): void {
  check(
    'hands over what is overdue, once, and not before its deadline',
    async (subject) => {
      const { calls, expect } = subject
      // Long enough to be handed over before it, on a busy machine too.
      const { overdue, dueAt } = await begin(subject, 'one', { dueInMs: 500 })
      const call = await calls.next()
      expect(Date.now() >= dueAt.getTime() - 2).toBe(true)
      expect(call.event).toEqual(overdue.event)
      expect(call.receivedAt).toEqual(dueAt)
      expect(call.attempt.number).toBe(1)
      call.finish()
      const { overdue: witness } = await begin(subject, 'witness', { mediaId: 'witness', dueInMs: soonMs })
      expect((await calls.next()).event.key).toBe(witness.event.key)
    },
    'expects',
  )

  check(
    'hands over nothing when an end was accepted in time',
    async (subject) => {
      const { calls, expect } = subject
      // Long enough to accept the end on a busy machine.
      await begin(subject, 'one', { dueInMs: 2_000 })
      await end(subject, 'end', 1, 'rule')
      const { overdue: witness } = await begin(subject, 'witness', { mediaId: 'witness', dueInMs: 2_000 })
      expect((await calls.next()).event.key).toBe(witness.event.key)
    },
    'expects',
  )

  check(
    'begins nothing when the end was accepted before the event that it ends',
    async (subject) => {
      await end(subject, 'end', 1, 'rule')
      await begin(subject, 'one', { at: 1 })
      subject.expect(await openOf(subject)).toEqual([])
    },
    'expects',
  )

  check(
    'begins nothing before the latest end, in whatever order the ends came',
    async (subject) => {
      await end(subject, 'later end', 5, 'rule')
      await end(subject, 'earlier end', 3, 'rule')
      await begin(subject, 'one', { at: 4 })
      subject.expect(await openOf(subject)).toEqual([])
    },
    'expects',
  )

  check(
    'keeps what began after the end, in either order',
    async (subject) => {
      await end(subject, 'end', 1, 'rule')
      await begin(subject, 'later', { at: 4 })
      await begin(subject, 'between', { at: 2 })
      await end(subject, 'older end', 3, 'rule')
      subject.expect(await openOf(subject)).toEqual(['rule of media'])
    },
    'expects',
  )

  check(
    'ends all expectations of a rule and a media item, and no others',
    async (subject) => {
      await begin(subject, 'one')
      await begin(subject, 'two', { at: 1 })
      await begin(subject, 'other rule', { rule: 'other' })
      await begin(subject, 'other media', { mediaId: 'other' })
      await end(subject, 'end', 1, 'rule')
      subject.expect((await openOf(subject)).toSorted()).toEqual(['other of media', 'rule of other'])
    },
    'expects',
  )

  check(
    'begins and ends nothing again for a duplicate, and begins nothing again for a replay',
    async (subject) => {
      const { inbox, calls, expect } = subject
      await begin(subject, 'one', { dueInMs: soonMs, result: { status: 'dead', completed: [], failures: [] } })
      const call = await calls.next()
      call.finish()
      await begin(subject, 'one')
      expect(await openOf(subject)).toEqual([])
      await until(async () => (await inbox.stats()).deadLetters === 1)
      expect(await inbox.deadLetters.replay('one')).toBe(true)
      const replayed = await calls.next()
      replayed.finish()
      expect(await openOf(subject)).toEqual([])
      await end(subject, 'end', 1, 'rule')
      await begin(subject, 'later', { at: 2 })
      await end(subject, 'end', 3, 'rule')
      expect(await openOf(subject)).toEqual(['rule of media'])
    },
    'expects',
  )

  check(
    'keeps rules and media items apart, whatever their texts are',
    async (subject) => {
      const { calls, expect } = subject
      const names = texts.flatMap((rule, index) => [
        { rule, mediaId: rule },
        { rule, mediaId: texts[(index + 1) % texts.length] as string },
      ])
      for (const [index, name] of names.entries())
        await begin(subject, `begin ${index}`, { ...name, dueInMs: laterMs + index * 10 })
      const open = names.map(({ rule, mediaId }) => `${rule} of ${mediaId}`)
      expect(await openOf(subject)).toEqual(open)
      for (const text of texts) await endIn(text, subject, `end ${text}`, 0, [text])
      expect(await openOf(subject)).toEqual(open.filter((_, index) => index % 2 === 1))
      const text = texts.join('')
      const { overdue } = await begin(subject, text, { rule: text, mediaId: text, dueInMs: soonMs })
      expect((await calls.next()).event).toEqual(overdue.event)
    },
    'expects',
  )

  check(
    'retries what is overdue like any event, and keeps it as a dead letter',
    async (subject) => {
      const { inbox, calls, expect } = subject
      const { overdue } = await begin(subject, 'one', { dueInMs: soonMs })
      const failures = [{ handler: 'a', message: 'failed' }]
      const first = await calls.next()
      first.finish({ status: 'retry', delayMs: 10, completed: [], failures })
      const second = await calls.next()
      expect(second.attempt.number).toBe(2)
      expect(second.event).toEqual(overdue.event)
      second.finish({ status: 'dead', completed: [], failures })
      await until(async () => (await inbox.deadLetters.get(overdue.event.key)) !== undefined)
      expect((await inbox.deadLetters.get(overdue.event.key))?.event).toEqual(overdue.event)
    },
    'expects',
  )

  check(
    'lists and counts the open expectations, the first deadline first',
    async (subject) => {
      const { inbox, expect } = subject
      const { dueAt: last } = await begin(subject, 'last', { at: latest })
      const { dueAt: first } = await begin(subject, 'first', { at: earliest, dueInMs: 50_000, rule: 'other' })
      expect(await inbox.expected?.()).toEqual([
        { rule: 'other', mediaId: media, beganAt: new Date(-8.64e15), dueAt: first },
        { rule: 'rule', mediaId: media, beganAt: new Date(8.64e15), dueAt: last },
      ])
      expect((await inbox.expected?.(1))?.length).toBe(1)
      expect((await inbox.stats()).expected).toBe(2)
      await end(subject, 'almost the end', latest - 1, 'rule', 'other')
      expect(await openOf(subject)).toEqual(['rule of media'])
      await end(subject, 'end', latest, 'rule')
      expect(await inbox.expected?.()).toEqual([])
    },
    'expects',
  )
}
