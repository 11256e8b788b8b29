import type { PoolClient } from 'pg'
import { describe, expectTypeOf, test } from 'vitest'
import type { SqliteDatabase } from '../../src/inbox/sqlite.ts'
import { createReceiver, type LookupOutcome, lifecycleKey, type Receiver, unverified } from '../../src/index.ts'

declare const receiver: Receiver

describe('accept', () => {
  test('takes a look-up, and tells the outcome', () => {
    expectTypeOf(receiver.accept({ type: 'encoding.finished', mediaId: 'm1' })).resolves.toEqualTypeOf<LookupOutcome>()
    receiver.accept({
      type: 'partial.finished',
      mediaId: 'm1',
      qualities: ['360p'],
      emittedAt: new Date(),
      title: null,
    })
    receiver.accept({ type: 'encoding.failed', mediaId: 'm1', emittedAt: '2026-03-01T12:00:00Z' }, { waitUntil() {} })
  })

  test('takes a client of the database, whichever driver it is of', () => {
    const pool = {} as PoolClient
    const file = {} as SqliteDatabase
    for (const client of [pool, file]) receiver.accept({ type: 'encoding.failed', mediaId: 'm1' }, { client })
    // @ts-expect-error the address of a database is no client
    receiver.accept({ type: 'encoding.failed', mediaId: 'm1' }, { client: 'postgres://localhost/app' })
    // @ts-expect-error it is called client
    receiver.accept({ type: 'encoding.failed', mediaId: 'm1' }, { transaction: pool })
  })

  test('does not compile with other fields', () => {
    // @ts-expect-error the media item is missing
    receiver.accept({ type: 'encoding.finished' })
    // @ts-expect-error event types have dots, not underscores
    receiver.accept({ type: 'encoding_finished', mediaId: 'm1' })
    // @ts-expect-error qualities are a list
    receiver.accept({ type: 'encoding.finished', mediaId: 'm1', qualities: '360p' })
    // @ts-expect-error it is called mediaId
    receiver.accept({ type: 'encoding.finished', videoId: 'm1' })
  })
})

test('overdue.accept fills in the media item', () => {
  receiver.expect('file.received', { then: 'encoding.finished', within: '2 h' }, (overdue) => {
    expectTypeOf(overdue.accept({ type: 'encoding.finished' })).resolves.toEqualTypeOf<LookupOutcome>()
    // @ts-expect-error the media item is known
    overdue.accept({ type: 'encoding.finished', mediaId: 'm1' })
  })
})

test('lifecycleKey is an event key', () => {
  createReceiver({ verify: unverified(), eventKey: lifecycleKey })
})
