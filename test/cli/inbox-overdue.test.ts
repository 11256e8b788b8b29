import { expect, test, vi } from 'vitest'
import { sqliteInbox } from '../../src/inbox/sqlite.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { freshPath } from '../inbox/sqlite/sqlite-tests.ts'
import { receiverWith } from '../receiver/listening-receiver.ts'
import { finish } from './program.ts'

/** An inbox in which the end of an encoding is overdue, and was reported. */
async function overdueInbox() {
  const path = await freshPath()
  const receiver = receiverWith({ inbox: sqliteInbox({ path }) })
  await receiver.ready()
  receiver.expect('file.received', { then: 'encoding.finished', within: '50 ms', name: 'encoded' }, () => {})
  const send = (type: 'file.received' | 'encoding.finished') =>
    deliver(receiver, samplePayload(type, { media_id: 'm1' }))
  await send('file.received')
  const inbox = async (...args: string[]) => (await finish(['inbox', path, ...args])).output
  await vi.waitUntil(async () => /\(handled\)/.test(await inbox('media', 'm1')), 5_000)
  return { send, inbox }
}

test('the lists say that an overdue event is still missing, although the alert was handled', async () => {
  const { inbox } = await overdueInbox()
  const media = await inbox('media', 'm1')
  expect(media).toMatch(/ {2}overdue, still missing \(handled\) {2}expectation\.overdue /)
  expect(media).toMatch(/\n\d events?, handled\nstill missing: encoding\.finished\n$/)
  expect(await inbox('events')).toMatch(/ {2}overdue, still missing \(handled\) {2}expectation\.overdue /)
})

test('the lists say that an overdue event came later, and so do show and --json', async () => {
  const { send, inbox } = await overdueInbox()
  await send('encoding.finished')
  const list = ['events', '--type', 'expectation.overdue']
  await vi.waitUntil(async () => /came later/.test(await inbox(...list)), 5_000)
  const [{ shortId, overdue }] = JSON.parse(await inbox(...list, '--json')).events
  expect([overdue.outcome, overdue.came.type]).toEqual(['came', 'encoding.finished'])
  expect(await inbox(...list)).toMatch(
    new RegExp(`^${shortId}  \\S+  overdue, came later \\(handled\\)  expectation\\.overdue `, 'm'),
  )
  expect(await inbox('show', shortId)).toMatch(/^state +overdue, came later \(handled\)$/m)
})

test('a short id of the list of dead letters is one that show takes', async () => {
  const path = await freshPath()
  const receiver = receiverWith({ inbox: sqliteInbox({ path }), retry: { attempts: 1 } })
  await receiver.ready()
  receiver.onAny(() => Promise.reject(new Error('no room')), { name: 'publish' })
  await deliver(receiver, samplePayload('file.received', { media_id: 'm1' }))
  const inbox = async (...args: string[]) => (await finish(['inbox', path, ...args])).output
  await vi.waitUntil(async () => /no room/.test(await inbox('dead-letters')), 5_000)
  const [, id = ''] = /^([0-9a-f]{8}) {2}20\S+ {2}file\.received /m.exec(await inbox('dead-letters')) ?? []
  expect(await inbox('show', id)).toContain(`short id  ${id}\n`)
  expect(JSON.parse(await inbox('dead-letters', '--json')).deadLetters).toEqual([
    expect.objectContaining({ shortId: id }),
  ])
})
