import { describe, expect, test } from 'vitest'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { eventOf } from '../../support/inbox.ts'
import { freshPath, started } from './sqlite-tests.ts'

describe('an event that is being accepted when its inbox closes', () => {
  test('is reported, and is handled by the next process', async () => {
    const path = await freshPath()
    const { inbox } = started({ path })
    const accepted = inbox.accept(eventOf('one'))
    const closed = inbox.close({ timeoutMs: 0 })
    expect(await accepted).toBe('accepted')
    expect((await closed).unfinished.map(({ event }) => event.key)).toEqual(['one'])
    const next = started({ path })
    expect((await next.calls.next()).event.key).toBe('one')
  })

  test('is waited for while another process writes to the file', async () => {
    const path = await freshPath()
    const { inbox } = started({ path })
    const other = openDatabase(path)
    other.exec('BEGIN IMMEDIATE')
    const accepted = inbox.accept(eventOf('one'))
    const closed = inbox.close({ timeoutMs: 0 })
    await new Promise((resolve) => setTimeout(resolve, 50))
    other.exec('COMMIT')
    other.close()
    expect(await accepted).toBe('accepted')
    expect((await closed).unfinished.map(({ event }) => event.key)).toEqual(['one'])
  })
})

test('a closed inbox has given its file back, even if another process writes to the file meanwhile', async () => {
  const path = await freshPath()
  const { inbox } = started({ path })
  const other = openDatabase(path)
  const owners = () => other.prepare('SELECT * FROM inbox_owner').all()
  expect(owners()).toHaveLength(1)
  other.exec('BEGIN IMMEDIATE')
  const closed = inbox.close({ timeoutMs: 0 })
  await new Promise((resolve) => setTimeout(resolve, 50))
  other.exec('COMMIT')
  await closed
  expect(owners()).toEqual([])
  other.close()
})

test('reports every event that waits when it closes, in order of acceptance', async () => {
  const { inbox, calls } = started({ path: await freshPath(), concurrency: 1 })
  const keys = Array.from({ length: 1_200 }, (_, index) => `event ${index}`)
  await Promise.all(keys.map((key) => inbox.accept(eventOf(key))))
  await calls.next()
  const { unfinished } = await inbox.close({ timeoutMs: 0 })
  expect(unfinished.map(({ event }) => event.key)).toEqual(keys)
})
