import { describe, expect, test, vi } from 'vitest'
import type { DeadLetter, FailedAttempt, HandlerFailure, ReadableInbox } from '../../../src/inbox/reading.ts'
import { Causes, commonFailures } from '../../../src/operate/dashboard/reading/causes.ts'
import { byHour, findFirstFailure, findOldest } from '../../../src/operate/dashboard/reading/first-failure.ts'
import { Redaction } from '../../../src/operate/dashboard/reading/redaction.ts'
import { makeTemplate } from '../../../src/operate/dashboard/reading/template.ts'
import { signalled } from '../../support/signalled.ts'
import { silent } from '../../support/silent.ts'

const now = new Date('2026-03-02T12:30:00Z')
const ago = (minutes: number) => new Date(now.getTime() - minutes * 60_000)
const publish = (message: string): HandlerFailure => ({ handler: 'publish', message })
const attempt = (minutesAgo: number, ...failures: HandlerFailure[]): FailedAttempt => ({
  number: 1,
  failures,
  failedAt: ago(minutesAgo),
})

let made = 0

/** Makes a dead letter of the last failed attempt. */
const deadLetter = (...failedAttempts: FailedAttempt[]): DeadLetter => ({
  key: `dead-${made++}`,
  event: undefined,
  receivedAt: ago(9_999),
  attempts: 1,
  completed: [],
  failures: failedAttempts.at(-1)?.failures ?? [],
  failedAttempts,
  diedAt: failedAttempts.at(-1)?.failedAt ?? now,
})

describe('the first failure of a dead letter', () => {
  test.each<[string, number, FailedAttempt[]]>([
    ['is its oldest attempt, also after a replay', 90, [attempt(90, publish('down')), attempt(1, publish('down'))]],
    ['has its cause', 30, [attempt(90, publish('slow')), attempt(30, publish('down')), attempt(1, publish('down'))]],
    ['can have other numbers', 90, [attempt(90, publish('after 3 s')), attempt(1, publish('after 40 s'))]],
    [
      'can be of more handlers',
      90,
      [attempt(90, { handler: 'mail', message: 'x' }, publish('down')), attempt(1, publish('down'))],
    ],
    ['is of the same handler', 1, [attempt(90, { handler: 'mail', message: 'down' }), attempt(1, publish('down'))]],
  ])('%s', (_, minutesAgo, attempts) => {
    expect(findFirstFailure(deadLetter(...attempts))).toEqual({ at: ago(minutesAgo), mayBeOlder: false })
  })

  test('is its end if the inbox keeps no attempts', () => {
    const { failedAttempts, ...rest } = deadLetter(attempt(5, publish('down')))
    expect(findFirstFailure(rest)).toEqual({ at: ago(5), mayBeOlder: false })
  })

  test('may be older if the inbox keeps no more attempts', () => {
    const attempts = Array.from({ length: 20 }, (_, index) => attempt(20 - index, publish('down')))
    expect(findFirstFailure(deadLetter(...attempts))).toEqual({ at: ago(20), mayBeOlder: true })
    const changed = [attempt(20, publish('slow')), ...attempts.slice(1)]
    expect(findFirstFailure(deadLetter(...changed))).toEqual({ at: ago(19), mayBeOlder: false })
  })
})

test('the first failure of a cause is the oldest, and may be older if one of them may', () => {
  const failures = [
    { at: ago(1), mayBeOlder: true },
    { at: ago(7), mayBeOlder: false },
    { at: ago(3), mayBeOlder: false },
  ]
  expect(findOldest(failures)).toEqual({ at: ago(7), mayBeOlder: true })
})

test('first failures are counted by hour: 24 hours until now, without what is older', () => {
  const failures = [-1, 0, 59, 60, 119, 1_439, 1_440, 9_999].map((minutes) => ({ at: ago(minutes), mayBeOlder: false }))
  const hours = byHour(failures, now)
  expect([hours.length, hours[0], hours[22], hours[23]]).toEqual([24, 1, 2, 3])
  expect(hours.reduce((sum, count) => sum + count)).toBe(6)
})

describe('the text of a cause', () => {
  async function textsOf(...messages: string[]) {
    const letters = messages.map((message) => deadLetter(attempt(1, publish(message))))
    const list = () => letters
    const inbox = { deadLetters: { list } } as unknown as ReadableInbox
    const { causes } = await new Causes(inbox, new Redaction(undefined, silent)).read(letters.length)
    return causes.map((cause) => commonFailures(cause))
  }

  test('is the message if all have the same', async () => {
    expect(await textsOf('answered 503', 'answered 503')).toEqual([[publish('answered 503')]])
  })

  test('has # for what differs in it', async () => {
    expect(await textsOf('retry "a" after 3 s', 'retry "b" after 4 s')).toEqual([[publish('retry “#” after # s')]])
  })

  test('is made in linear time, with any number of quotes', () => {
    const message = " 'a".repeat(200)
    const before = process.cpuUsage()
    for (let times = 0; times < 300; times++) makeTemplate(message)
    // Microseconds. One pattern for a whole quoted part takes 500,000.
    expect(process.cpuUsage(before).user).toBeLessThan(300_000)
  })

  test.each([
    [`no film 'it's late'`, 'no film “#”'],
    ['“a” «b» ‘c’ `d`', '“#” “#” “#” “#”'],
    [`don't "a`, `don't "a`],
    ['"a"b" c', '“#” c'],
  ])('of %s is %s', (message, template) => {
    expect(makeTemplate(message)).toBe(template)
  })
})

test('dead letters are grouped in turns of the event loop', async () => {
  const message = `no film ${"'a ".repeat(200)}`
  const letters = Array.from({ length: 1_000 }, () =>
    deadLetter(...[3, 2, 1].map((each) => attempt(each, publish(message + each)))),
  )
  const inbox = { deadLetters: { list: () => letters } } as unknown as ReadableInbox
  let turns = 0
  const counting = setInterval(() => turns++, 0)
  await new Causes(inbox, new Redaction(undefined, silent)).read(letters.length)
  clearInterval(counting)
  expect(turns).toBeGreaterThan(3)
})

test('a report that was being read while dead letters were replayed is read again', async () => {
  const { promise: mayAnswer, resolve: answer } = signalled()
  const all = [deadLetter(attempt(1, publish('down')))]
  const list = vi.fn(async ({ limit = 100 } = {}) => {
    const listed = [...all]
    if (limit > 1 && listed.length > 0) await mayAnswer
    return listed
  })
  const causes = new Causes({ deadLetters: { list } } as unknown as ReadableInbox, new Redaction(undefined, silent))
  const stale = causes.read(1)
  await vi.waitFor(() => expect(list).toHaveBeenCalledTimes(2))
  all.pop()
  causes.forget()
  const fresh = causes.read(0)
  answer()
  expect((await stale).causes).toHaveLength(1)
  expect((await fresh).causes).toEqual([])
  expect((await causes.read(0)).causes).toEqual([])
})
