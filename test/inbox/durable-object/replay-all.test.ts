import { expect, test, vi } from 'vitest'
import { eventOf, openInbox } from '../../support/inbox.ts'
import { silent } from '../../support/silent.ts'
import { ObjectsInNode } from './objects-in-node.ts'

const dead = { status: 'dead', completed: [], failures: [{ handler: 'a', message: 'Error: no' }] } as const

/** Objects with a dead letter of each key, in this order. */
async function withDead(keys: readonly string[]) {
  const objects = new ObjectsInNode()
  const { inbox, calls } = openInbox({ name: 'objects', open: (host) => objects.open(host) }, silent)
  for (const key of keys) {
    await inbox.accept(eventOf(key))
    ;(await calls.next()).finish(dead)
    await vi.waitFor(async () => expect(await inbox.events?.get(key)).toMatchObject({ state: 'dead' }))
  }
  objects.asked.length = 0
  return { inbox, calls, objects }
}

test('replayAll asks objects for keys, and for no dead letter that it can replay by its key', async () => {
  const { inbox, calls, objects } = await withDead(['one', 'lone \ud800', 'three'])
  const sql = objects.storages[0]?.sql
  const copies = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
    INSERT INTO inbox_event (hash, media, event, head, received_at, died_at)
    SELECT i, 1, '{}', '["a","b","copy ' || i || '"]', 0, 1577836800000 FROM n`
  sql?.exec(copies)
  sql?.exec('UPDATE inbox_counter SET next = 2000')
  sql?.exec(
    "INSERT INTO inbox_event (hash, media, event, head, received_at, died_at) VALUES ('damaged', 1, '{', '{', 0, 0)",
  )
  const replayed = inbox.deadLetters.replayAll?.({ since: new Date(Date.now() - 60_000) })
  const keys: string[] = []
  for (let i = 0; i < 3; i++) {
    const call = await calls.next()
    keys.push(call.event.key)
    call.finish()
  }
  expect(keys).toEqual(['one', 'lone \ud800', 'three'])
  expect(await replayed).toEqual({ total: 3, replayed: 3, kept: 0 })
  expect(objects.asked.map(({ step }) => step)).toEqual(['keys', 'keys', 'replay', 'replay', 'replay'])
})

test('replayAll replays those of a type only', async () => {
  const { inbox } = await withDead(['one'])
  expect(await inbox.deadLetters.replayAll?.({ type: 'no.such.type' })).toEqual({ total: 0, replayed: 0, kept: 0 })
})
