import { expect, onTestFinished, test, vi } from 'vitest'
import { openInboxFile, sqliteInbox } from '../../../src/inbox/sqlite.ts'
import type { Inbox } from '../../../src/index.ts'
import { type Calls, eventOf, openInbox, until } from '../../support/inbox.ts'
import { freshPath } from './sqlite-tests.ts'

const failures = [{ handler: 'a', message: 'no' }]
const day = 86_400_000

/** Sets the clock, and leaves the timers as they are. */
function clock() {
  vi.useFakeTimers({ toFake: ['Date'], now: eventOf('any').receivedAt })
  onTestFinished(() => void vi.useRealTimers())
}

const since = async (inbox: Inbox) => (await inbox.stats()).oldestWaitingAt
const now = () => new Date(Date.now())

/** Lets an event die, and replays it a day later while another event of its media item runs: it waits. */
async function replayed(inbox: Inbox, calls: Calls) {
  await inbox.accept(eventOf('dead', 'm'))
  ;(await calls.next()).finish({ status: 'dead', completed: [], failures })
  await until(async () => (await inbox.stats()).deadLetters === 1)
  vi.setSystemTime(Date.now() + day)
  await inbox.accept({ ...eventOf('running', 'm'), receivedAt: now() })
  await calls.next()
  await inbox.deadLetters.replay('dead')
}

test('a file of SQLite keeps since when a replayed event waits, for others and for the next process', async () => {
  clock()
  const path = await freshPath()
  const { inbox, calls } = openInbox(sqliteInbox({ path }))
  await replayed(inbox, calls)
  const replayedAt = now()
  const file = openInboxFile(path)
  onTestFinished(() => file.close())
  expect(file.stats().oldestWaitingAt).toEqual(replayedAt)
  expect(file.events.get('dead')).toMatchObject({ state: 'waiting', receivedAt: eventOf('dead').receivedAt })
  await inbox.close({ timeoutMs: 0 })
  vi.setSystemTime(Date.now() + day)
  const next = openInbox(sqliteInbox({ path }))
  onTestFinished(async () => void (await next.inbox.close({ timeoutMs: 0 })))
  await next.calls.next()
  expect(await since(next.inbox)).toEqual(replayedAt)
})

test('an event that another program replays in a file of SQLite waits since its replay', async () => {
  clock()
  const path = await freshPath()
  const { inbox, calls } = openInbox(sqliteInbox({ path }))
  await inbox.accept(eventOf('dead', 'm'))
  ;(await calls.next()).finish({ status: 'dead', completed: [], failures })
  await until(async () => (await inbox.stats()).deadLetters === 1)
  await inbox.close()
  vi.setSystemTime(Date.now() + day)
  const file = openInboxFile(path)
  onTestFinished(() => file.close())
  await file.deadLetters.replay('dead')
  expect(file.stats().oldestWaitingAt).toEqual(now())
})
